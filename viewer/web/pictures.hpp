#pragma once
// Encodes JPEG pictures for the stream, with libjpeg-turbo. Use each object from one thread only.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "core/types.hpp"
#include "viewer/watch/tap.hpp"
#include "viewer/web/requests.hpp"
#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

class jpeg_encoder {
public:
    jpeg_encoder();  ///< throws output_error
    ~jpeg_encoder();
    jpeg_encoder(const jpeg_encoder&) = delete;
    jpeg_encoder& operator=(const jpeg_encoder&) = delete;

    /// RGBA8, dense, top row first; alpha is dropped. `quality` 1..100. Throws output_error.
    [[nodiscard]] std::string encode(std::span<const u8> rgba, u32 width, u32 height, int quality);

private:
    void* handle_;
};

// Pictures for the dashboard. The picture thread takes pictures only while a client needs them. If there are
// no clients, no frame is leased, copied or encoded. After half a minute without clients the tap is closed,
// too; on a GPU this also destroys its context. Each picture is the tap's newest complete frame; the last
// picture is kept during crashes and after the end of the run. Functions may be called from any thread.
// Callbacks run in the picture thread and must not block.

struct jpeg_picture {
    u64 ring_sequence = 0;
    std::string bytes;
};
struct png_answer {
    std::string bytes;  ///< empty: see `problem`
    std::string problem;
    u64 ring_sequence = 0;
    u64 age_ns = 0;  ///< time since the frame was taken
};
struct picture_status {
    u32 width = 0, height = 0;  ///< 0: none yet
    u64 ring_sequence = 0, taken_ns = 0;
    std::vector<shown_picture> shown;  ///< the pictures that are shown: one, or two side by side
    std::string note;                  ///< why two pictures do not show the same frame; "": they do
    picture_request request;
    u32 streams = 0;
    std::string stage, path, problem;  ///< problem: why there is no newer picture
    discarded losses;
};

class pictures {
public:
    using jpeg_ptr = std::shared_ptr<const jpeg_picture>;
    using on_jpeg = std::function<void(jpeg_ptr)>;
    using on_png = std::function<void(png_answer)>;
    using on_pixel = std::function<void(std::string)>;
    static constexpr std::size_t max_png_asks = 16, max_pixel_asks = 16;

    pictures(watcher& w, picture_request request, f64 fps, int quality, on_jpeg fresh);
    ~pictures();
    pictures(const pictures&) = delete;
    pictures& operator=(const pictures&) = delete;

    /// Changes the number of viewers of the stream by `more`, which may be negative.
    void add_viewers(int more);
    /// Returns the newest picture, to be sent to a new viewer; may be null.
    [[nodiscard]] jpeg_ptr newest();
    /// Calls `fn` with a frame that is newer than this call or, if no frame arrives within a second, with the
    /// last one. Returns false if too many requests are pending.
    [[nodiscard]] bool ask_png(on_png fn);
    /// Calls `fn` with the pixel of the last picture taken, in the format of pixel_json(). Returns false if
    /// too many requests are pending.
    [[nodiscard]] bool ask_pixel(u32 x, u32 y, on_pixel fn);
    /// Selects the picture that the tap takes from now on.
    void show(const picture_request& request);
    [[nodiscard]] picture_status status();

private:
    struct png_ask {
        on_png fn;
        u64 asked_ns;
    };
    struct pixel_ask {
        on_pixel fn;
        u32 x, y;
    };
    void loop();
    void follow_request();
    void note_frame(u64 now);
    void answer_pixels();
    bool take(u64 now);
    void open_tap(u64 now);
    void drop_tap();
    void answer_asks(bool fresh, u64 now);
    void publish();

    watcher& watcher_;
    u64 every_ns_;
    int quality_;
    on_jpeg fresh_;
    // Picture thread only.
    std::shared_ptr<const run::mapped_block> run_;
    std::unique_ptr<tap> tap_;
    picture_request opened_;  ///< the request that the tap currently follows
    std::unique_ptr<jpeg_encoder> encoder_;
    std::vector<u8> last_;  ///< RGBA8 of the last complete frame
    u64 next_open_ns_ = 0, open_delay_ns_ = 0, viewed_ns_ = 0;
    // Under the mutex.
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stop_ = false;
    std::deque<png_ask> asks_;
    std::deque<pixel_ask> pixel_asks_;
    jpeg_ptr newest_;
    picture_status status_;
    std::thread thread_;
};

}  // namespace carousel::viewer::web
