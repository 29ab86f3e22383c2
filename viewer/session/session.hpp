#pragma once
// The viewer's connection to a run. It finds a run, maps it, reads its state, and takes its picture by a tap.
// After it has found a run, the session stays with this run, which is identified by its folder and run id. It
// continues if another supervisor takes the run over or if the run's memory is recreated, and keeps the last
// state after the run has ended. It switches only when the user chooses another run. Every error becomes a
// sentence in the model; no function throws. All functions must be called in the window's thread.

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
    std::string name;          ///< name of the run; "": the first run found, if it is the only one
    picture_choice what = {};  ///< the choice at the start; afterwards model::picture.wanted is used
    bool use_gl = false;
    picture_way way = picture_way::best;
    i32 supervisor = 0;  ///< pid of the `carousel run` process whose run is watched; 0: any run
    client_access allowed = client_access::full;
};

/// Receives the pictures. The interface of this class does not depend on GL, so that code that uses the
/// class can run without GL.
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
    /// Sends `shutdown` and waits for the answer, at most 2 s. If there is no run yet, sends SIGTERM to the
    /// `carousel run` process that the options name.
    void end_run(const model& m);
    /// True if the `carousel run` process that the options name has exited, and its run has ended.
    [[nodiscard]] bool is_over() const;

private:
    void find_run(model& m, u64 now);
    void attach(model& m, const run::record& r);
    void observe(const run::record& r);
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
    void sample_slot(model& m);
    void drop_tap(model& m, const std::string& why) noexcept;

    session_options options_;
    shm::process_id supervisor_;  ///< identifies the `carousel run` process of the options, by its pid
                                  ///< (options_.supervisor) and its start time
    control_client control_;
    std::optional<run::observer> observer_;            ///< observer of the watched run, kept after its end
    std::shared_ptr<const run::mapped_block> mapped_;  ///< used by sampler and tap
    std::unique_ptr<sampler> sampler_;
    std::unique_ptr<tap> tap_;
    std::unique_ptr<slot_sampler> slots_;  ///< while the window of a slot is open
    picture_choice choice_;  ///< the choice with which the current tap was opened, or with which the next tap
                             ///< will be opened
    std::string no_pictures_;  ///< the reason why frames cannot be leased; "": they can
    bool begun_ = false;
    telemetry::rate_tracker tracker_;
    u64 next_poll_ns_ = 0, next_check_ns_ = 0, next_tap_ns_ = 0, next_settings_ns_ = 0, tap_delay_ns_ = 0;
    parameter_sync parameters_;
    bool schema_known_ = false;   ///< the schema of the watched block is known
    std::string attach_problem_;  ///< the reason why the run that was found cannot be watched
    bool was_paused_ = false;     ///< the picture was paused in the last frame
};

}  // namespace carousel::viewer
