#pragma once
// The viewer's connection to a run: finds, maps and reads it, and taps its picture. After the first contact
// the session stays with that run, (folder, run id): it follows the run to another supervisor and to
// recreated memory, keeps showing the last state after the run has ended, and switches only when the user
// chooses another run. Every error becomes a sentence in the model; no function throws. To be called only in
// the window's thread.

#include <memory>
#include <optional>
#include <string>

#include "control/client.hpp"
#include "viewer/session/model.hpp"
#include "viewer/session/parameter_values.hpp"
#include "viewer/watch/sampler.hpp"
#include "viewer/watch/tap.hpp"

namespace carousel::viewer {

struct session_options {
    std::string name;          ///< "": the only run at the first contact
    picture_choice what = {};  ///< initially; after that model::picture.wanted applies
    bool use_gl = false;
    picture_way way = picture_way::best;
    i32 supervisor = 0;  ///< watch only the run of this `carousel run` process; 0: any
};

/// Receives the pictures. Contains no GL, so that everything above it can run without GL.
class picture_store;

class session {
public:
    explicit session(session_options options);
    ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    /// To be called once per frame: updates the model.
    void update(model& m, picture_store& store);
    /// Sends the panels' requests.
    void handle_command(model& m);
    /// Sends `shutdown` and waits for the answer, at most 2 s. Before there is a run: sends SIGTERM to the
    /// `carousel run` process of the options.
    void end_run(const model& m);
    /// True if the `carousel run` process of the options has exited, and its run with it.
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
    shm::process_id supervisor_;  ///< the process options_.supervisor with its start time
    control_client control_;
    std::optional<run::observer> observer_;            ///< observer of the watched run, kept after its end
    std::shared_ptr<const run::mapped_block> mapped_;  ///< used by sampler and tap
    std::unique_ptr<sampler> sampler_;
    std::unique_ptr<tap> tap_;
    picture_choice choice_;  ///< choice of the current tap, or of the next one
    bool begun_ = false;
    telemetry::rate_tracker tracker_;
    u64 next_poll_ns_ = 0, next_check_ns_ = 0, next_tap_ns_ = 0, tap_delay_ns_ = 0;
    parameter_sync parameters_;
    bool schema_known_ = false;   ///< of the watched block
    std::string attach_problem_;  ///< the reason why the run that was found cannot be watched
    bool was_paused_ = false;     ///< in the last frame
};

}  // namespace carousel::viewer
