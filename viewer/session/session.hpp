#pragma once
// The viewer's tie to a run: finds it, maps it, reads it, taps its picture. With the first look at a run it
// is tied to that one, (folder, run id), for good: it follows it to another supervisor and to memory made
// anew, stays with what it saw last when the run has ended, and takes another run only when the user chooses
// one. Whatever goes wrong becomes a sentence in the model; nothing throws. The window's thread.

#include <memory>
#include <optional>
#include <string>

#include "run/observer.hpp"
#include "viewer/session/model.hpp"
#include "viewer/session/parameter_sync.hpp"
#include "viewer/watch/sampler.hpp"
#include "viewer/watch/tap.hpp"

namespace carousel::viewer {

struct session_options {
    std::string name;          ///< "": the only one that runs at the first look
    picture_choice what = {};  ///< at first; then as the model says
    bool use_gl = false;
    picture_way way = picture_way::best;
    i32 supervisor = 0;  ///< watch the run of this `carousel run` process, and none other; 0: any
};

/// Where pictures go; has no GL in it, so that everything above can run without.
class picture_store;

class session {
public:
    explicit session(session_options options);
    ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    /// Once a frame: brings the model up to date.
    void update(model& m, picture_store& store);
    /// Sends what the panels asked for.
    void handle_command(model& m);
    /// Sends `shutdown` and waits for the answer, at most 2 s. Before there is a run: SIGTERM to the
    /// process that will be it.
    void end_run(const model& m);
    /// The process that was asked for is gone, and its run with it.
    [[nodiscard]] bool is_over() const;

private:
    void find_run(model& m, u64 now);
    void attach(model& m, const run::record& r);
    void begin_with_block(model& m);
    void detach(model& m, run_phase phase, const std::string& notice);
    void check_alive(model& m, u64 now);
    void read(model& m);
    void take_hosts(model& m, u64 now);
    void log_replies(model& m, u64 now);
    void open_tap(model& m, u64 now);
    void follow_choice(model& m, picture_store& store);
    void show_frame(model& m, picture_store& store, bool is_new);
    void poll_picture(model& m, picture_store& store, u64 now);
    void drop_tap(model& m, const std::string& why) noexcept;

    session_options options_;
    shm::process_id supervisor_;  ///< options_.supervisor by its full name
    control_client control_;
    std::optional<run::observer> observer_;            ///< of the run that is watched, or was until it ended
    std::shared_ptr<const run::mapped_block> mapped_;  ///< that sampler and tap use
    std::unique_ptr<sampler> sampler_;
    std::unique_ptr<tap> tap_;
    picture_choice choice_;  ///< that the tap was opened with, or is to be
    bool begun_ = false;
    telemetry::rate_tracker tracker_;
    u64 next_poll_ns_ = 0, next_check_ns_ = 0, next_tap_ns_ = 0, tap_delay_ns_ = 0;
    parameter_sync parameters_;
    bool schema_known_ = false;   ///< of the block that is watched
    std::string attach_problem_;  ///< why the run that is there can't be watched
    bool was_paused_ = false;     ///< the picture was held in the last frame
};

}  // namespace carousel::viewer
