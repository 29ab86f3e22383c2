#pragma once
// A run as a viewer sees it, without stages: a runtime directory with record and socket, a control block in
// shared memory, a ring of pictures in a memfd, parameters that can be set, and a thread that passes frames,
// obeys commands and dies on request. XDG_RUNTIME_DIR must name a folder of the caller.

#include <atomic>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <thread>

#include "device/backend.hpp"
#include "shm/fd_socket.hpp"
#include "shm/segment.hpp"
#include "tests/viewer/rig.hpp"
#include "tests/viewer/scene_schema.hpp"

namespace carousel::test {

struct fake_options {
    std::string name = "demo";
    u32 width = 320, height = 180;
    f64 fps = 60;
    f64 back_after_s = 0.3;                          ///< from a death to its successor
    i32 supervisor = 0;                              ///< named in the record; 0: this process
    ring::parameter_schema schema = scene_schema();  ///< none: the run has no parameters
    std::string schema_text = {};  ///< reported as the schema instead, JSON; "": the real one
};

/// The answers to `set` and `parameters`.
struct fake_answers {
    f64 after_s = 0;      ///< a `set` is done so much later, and answered then
    u32 wait = 0;         ///< this many are refused: changes wait for frames
    std::string refusal;  ///< the sentence that refuses all others; "": they are done
    u32 unknown = 0;      ///< this many requests for the parameters are not understood
};

class fake_run {
public:
    explicit fake_run(fake_options options = {});
    ~fake_run();
    fake_run(const fake_run&) = delete;
    fake_run& operator=(const fake_run&) = delete;

    void kill(u32 seat);
    /// The record and the socket disappear, as at the end of a run.
    void end();
    /// The supervisor's last word, then as end().
    void end_with(int exit_code);
    /// The record names that process from now on.
    void adopt(i32 supervisor);
    /// The control block is rebuilt under its old name, as when the owner of ipc memory has died; frames
    /// begin at 0 again.
    void rebuild();
    [[nodiscard]] u64 frames() const noexcept { return frames_.load(); }
    [[nodiscard]] u32 epoch_of(u32 seat);
    [[nodiscard]] const std::string& run_id() const noexcept { return run_id_; }
    [[nodiscard]] shm::control_block& block() noexcept { return segment_->block(); }
    /// All sets and queries from now on.
    void answer_as(fake_answers a);
    /// By another user: {name: value}.
    void set_values(const nlohmann::json& values);
    /// Raw bytes over the newest set, as a broken process may leave them.
    void damage_values(std::byte with);
    /// JSON text of every `set` that was received, "reset" for one that resets.
    [[nodiscard]] std::vector<std::string> sets();
    /// A field's first element in the control block's newest set.
    [[nodiscard]] f64 value_of(const std::string& name);
    /// "verb stage" of every command that came.
    [[nodiscard]] std::vector<std::string> commands();
    /// The colour of a pixel of a frame.
    [[nodiscard]] static u32 color_of(u64 frame_number, u32 x, u32 y, u32 width, u32 height) noexcept;

private:
    [[nodiscard]] u32 epoch_in(u32 seat) const;  ///< the mutex is held
    void make_block();
    void write_record(i32 supervisor);
    void run_frames();
    void serve();
    void answer(int fd, const std::string& text);
    [[nodiscard]] nlohmann::json answer_command(const std::string& verb, const std::string& stage);
    [[nodiscard]] nlohmann::json answer_ps();
    [[nodiscard]] nlohmann::json answer_parameters();
    [[nodiscard]] nlohmann::json answer_set(const nlohmann::json& request);
    [[nodiscard]] nlohmann::json parameters_now();           ///< the mutex is held
    void publish(const nlohmann::json& values, bool reset);  ///< the mutex is held
    void paint(u32 seat, const ring::job& j);
    void count(u32 seat, const ring::job& j);
    void revive(u64 now);

    fake_options options_;
    std::string run_id_, folder_;
    std::unique_ptr<shm::segment> segment_, old_segment_;
    std::unique_ptr<rig> rig_;
    device::memory_handle memory_;
    shm::unique_fd memory_fd_, listener_;
    std::unique_ptr<device::context> context_;
    std::unique_ptr<device::mapping> ring_;
    std::mutex mutex_;
    std::vector<u64> back_at_;
    std::set<u32> paused_;
    std::vector<std::string> commands_, sets_;
    fake_answers answers_;
    std::atomic<u64> frames_{0};
    std::atomic<bool> stop_{false};
    std::thread frames_thread_, serve_thread_;
};

}  // namespace carousel::test
