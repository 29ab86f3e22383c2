#include "viewer/web/pictures.hpp"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "viewer/watch/picture_choice.hpp"

namespace carousel::viewer::web {
namespace {

constexpr u64 first_open_delay_ns = 250 * ns_per_ms, longest_open_delay_ns = 2 * ns_per_s;
constexpr u64 png_patience_ns = ns_per_s, idle_ns = 30 * ns_per_s;
constexpr auto poll_every = std::chrono::milliseconds(4);
constexpr auto idle_poll_every = std::chrono::seconds(1);

}  // namespace

jpeg_encoder::jpeg_encoder() : handle_(tjInitCompress()) {
    if (handle_ == nullptr)
        throw output_error(fmt::format("setting the JPEG encoder up: {}", tjGetErrorStr2(nullptr)));
}

jpeg_encoder::~jpeg_encoder() { tjDestroy(handle_); }

std::string jpeg_encoder::encode(std::span<const u8> rgba, u32 width, u32 height, int quality) {
    if (width == 0 || height == 0 || rgba.size() < std::size_t{width} * height * 4)
        throw output_error("there is no picture to encode as JPEG");
    std::string out(tjBufSize(static_cast<int>(width), static_cast<int>(height), TJSAMP_420), '\0');
    auto* to = reinterpret_cast<unsigned char*>(out.data());
    unsigned long bytes = out.size();
    if (tjCompress2(handle_, rgba.data(), static_cast<int>(width), 0, static_cast<int>(height), TJPF_RGBX,
                    &to, &bytes, TJSAMP_420, quality, TJFLAG_NOREALLOC) != 0)
        throw output_error(
            fmt::format("encoding a picture of {} x {} as JPEG: {}", width, height, tjGetErrorStr2(handle_)));
    out.resize(bytes);
    return out;
}

pictures::pictures(watcher& w, picture_request request, f64 fps, int quality, on_jpeg fresh)
    : watcher_(w),
      every_ns_(static_cast<u64>(1e9 / std::clamp(fps, 0.1, 240.0))),
      quality_(quality),
      fresh_(std::move(fresh)),
      opened_(request),
      encoder_(std::make_unique<jpeg_encoder>()) {
    status_.request = std::move(request);
    thread_ = std::thread([this] { loop(); });
}

pictures::~pictures() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void pictures::add_viewers(int more) {
    {
        const std::lock_guard lock(mutex_);
        status_.streams = static_cast<u32>(std::max(0, static_cast<int>(status_.streams) + more));
    }
    wake_.notify_all();
}

pictures::jpeg_ptr pictures::newest() {
    const std::lock_guard lock(mutex_);
    return newest_;
}

bool pictures::ask_png(on_png fn) {
    {
        const std::lock_guard lock(mutex_);
        if (asks_.size() >= max_png_asks) return false;
        asks_.push_back({std::move(fn), now_ns()});
    }
    wake_.notify_all();
    return true;
}

bool pictures::ask_pixel(u32 x, u32 y, on_pixel fn) {
    {
        const std::lock_guard lock(mutex_);
        if (pixel_asks_.size() >= max_pixel_asks) return false;
        pixel_asks_.push_back({std::move(fn), x, y});
    }
    wake_.notify_all();
    return true;
}

void pictures::show(const picture_request& request) {
    const std::lock_guard lock(mutex_);
    status_.request = request;
}

picture_status pictures::status() {
    const std::lock_guard lock(mutex_);
    return status_;
}

void pictures::loop() {
    bool idle = true;
    u64 next_ns = 0;
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            const auto wanted = [this] {
                return stop_ || status_.streams > 0 || !asks_.empty() || !pixel_asks_.empty();
            };
            if (!wanted()) {
                idle = true;
                wake_.wait_for(lock, idle_poll_every, wanted);
            }
            if (stop_) return;
            if (!wanted()) {
                lock.unlock();
                if (tap_ && now_ns() > viewed_ns_ + idle_ns) drop_tap();
                continue;
            }
        }
        const u64 now = viewed_ns_ = now_ns();
        // If the tap has taken a frame while there were no viewers, drops this frame, because it is old.
        if (std::exchange(idle, false) && tap_) tap_->refresh();
        bool fresh = false;
        if (now >= next_ns) fresh = take(now);
        if (fresh) {
            publish();
            next_ns = now + every_ns_;
        }
        answer_asks(fresh, now);
        answer_pixels();
        std::unique_lock lock(mutex_);
        const auto pause = fresh ? std::chrono::nanoseconds(every_ns_) : std::chrono::nanoseconds(poll_every);
        const std::size_t asked = asks_.size();
        wake_.wait_for(lock, pause, [&] { return stop_ || asks_.size() > asked || !pixel_asks_.empty(); });
        if (stop_) return;
    }
}

/// Returns true if last_ is a new frame.
bool pictures::take(u64 now) {
    try {
        std::shared_ptr<const run::mapped_block> run = watcher_.attached();
        if (run != run_) {
            drop_tap();
            run_ = std::move(run);
            next_open_ns_ = 0;
            open_delay_ns_ = first_open_delay_ns;
        }
        follow_request();
        if (!tap_) open_tap(now);
        if (!tap_ || !tap_->poll()) return false;
        note_frame(now);
        return true;
    } catch (const std::exception& e) {
        drop_tap();
        next_open_ns_ = now + longest_open_delay_ns;
        const std::lock_guard lock(mutex_);
        status_.problem = std::string("the picture stopped: ") + e.what();
        return false;
    }
}

// If another ring or plane is chosen, a new tap is opened. If another range or colour map is chosen, it is
// used from the next frame on.
void pictures::follow_request() {
    const picture_request request = status().request;
    if (request == opened_) return;
    if (!(request.what == opened_.what)) {
        drop_tap();
        next_open_ns_ = 0;
        open_delay_ns_ = first_open_delay_ns;
    }
    opened_ = request;
    if (tap_) (void)tap_->set_styles(request.styles);
}

void pictures::note_frame(u64 now) {
    const auto* pixels = reinterpret_cast<const u8*>(tap_->pixels());
    last_.assign(pixels, pixels + std::size_t{tap_->width()} * tap_->height() * 4);
    const discarded lost = tap_->losses();
    const std::lock_guard lock(mutex_);
    status_.width = tap_->width();
    status_.height = tap_->height();
    status_.ring_sequence = tap_->ring_sequence();
    status_.taken_ns = now;
    status_.shown = tap_->shown();
    status_.note = tap_->note();
    status_.losses = lost;
    status_.problem.clear();
}

void pictures::answer_pixels() {
    std::deque<pixel_ask> due;
    picture_status s;
    {
        const std::lock_guard lock(mutex_);
        due.swap(pixel_asks_);
        if (!due.empty()) s = status_;
    }
    for (const pixel_ask& a : due) a.fn(pixel_json(tap_ ? tap_->pixel_at(a.x, a.y) : std::nullopt, s.shown));
}

void pictures::open_tap(u64 now) {
    if (!run_ || now < next_open_ns_) return;
    try {
        tap_ = std::make_unique<tap>(run_->attached->block(), run_->run.socket(), opened_.what, nullptr,
                                     picture_way::best, opened_.styles);
        open_delay_ns_ = first_open_delay_ns;
        const std::lock_guard lock(mutex_);
        status_.stage = tap_->stage();
        status_.path = tap_->path();
        status_.problem.clear();
    } catch (const std::exception& e) {
        next_open_ns_ = now + open_delay_ns_;
        open_delay_ns_ = std::min(open_delay_ns_ * 2, longest_open_delay_ns);
        const std::lock_guard lock(mutex_);
        status_.problem = e.what();
    }
}

void pictures::drop_tap() { tap_.reset(); }

void pictures::publish() {
    picture_status s = status();
    if (s.streams == 0) return;
    try {
        auto made = std::make_shared<jpeg_picture>(
            jpeg_picture{s.ring_sequence, encoder_->encode(last_, s.width, s.height, quality_)});
        {
            const std::lock_guard lock(mutex_);
            newest_ = made;
        }
        fresh_(made);
    } catch (const std::exception& e) {
        const std::lock_guard lock(mutex_);
        status_.problem = e.what();
    }
}

void pictures::answer_asks(bool fresh, u64 now) {
    std::vector<on_png> due;
    picture_status s;
    {
        const std::lock_guard lock(mutex_);
        s = status_;
        for (auto at = asks_.begin(); at != asks_.end();) {
            const bool ready = (fresh && s.taken_ns >= at->asked_ns) || now >= at->asked_ns + png_patience_ns;
            if (ready) due.push_back(std::move(at->fn));
            at = ready ? asks_.erase(at) : at + 1;
        }
    }
    if (due.empty()) return;
    png_answer a;
    try {
        if (last_.empty()) {
            a.problem = s.problem.empty() ? "there is no picture yet" : s.problem;
        } else {
            const std::vector<std::byte> png = pack_picture(last_, s.width, s.height);
            a.bytes.assign(reinterpret_cast<const char*>(png.data()), png.size());
        }
        a.ring_sequence = s.ring_sequence;
        a.age_ns = now - std::min(now, s.taken_ns);
    } catch (const std::exception& e) {
        a.problem = e.what();
    }
    for (const on_png& fn : due) fn(a);
}

}  // namespace carousel::viewer::web
