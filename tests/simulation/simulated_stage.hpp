#pragma once
// A stage's process on a simulated machine: the handshake over the run's real socket, the ring's own code,
// the sink's own ledger. One protocol step per event, so that a kill, a stop or a full disk can fall between
// any two steps. Its device is a table of contents: a frame's slot holds the frame's number when its write
// has landed, which may be after the death of the process, until the process's end is reported.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "device/cpu/memfd.hpp"
#include "ledger/ledger.hpp"
#include "ring/helper.hpp"
#include "ring/participants.hpp"
#include "ring/worker.hpp"
#include "shm/fd_socket.hpp"
#include "shm/segment.hpp"
#include "simulated_link.hpp"
#include "simulated_machine.hpp"
#include "stages/runner/delivered.hpp"

namespace carousel::test {

/// The rings' memory and the sinks' outputs, as observed from outside the run.
struct observed_run {
    machine* on = nullptr;
    std::string folder, run_id;
    /// generation of the rings' memory, link, slot -> number of the frame whose payload it holds; ~0: being
    /// written
    std::map<std::pair<u32, u32>, u64> content;
    std::set<std::pair<u32, u32>> pending;  ///< entry, slot of the first output: the event is not complete
    std::map<u32, std::map<u64, u32>> delivered;  ///< sink stage -> frame -> commits
    /// Since a reader that frames may pass by (a port that skips, an optional sink) began to read: the first
    /// frame that it must not miss, and the last one that it had.
    struct attendance {
        u64 from = 0, last = 0;
        bool any = false, present = true;
    };
    std::map<std::string, std::vector<attendance>> attendances;  ///< by stage
    std::set<std::string> absent;     ///< stages that frames pass by until their next process
    std::set<std::string> broken;     ///< stages whose processes can't start
    std::map<u32, u64> must_deliver;  ///< sinks that may miss no frame, and of how many frames they take one
    std::unique_ptr<simulated_link> link;  ///< from another host; null: there is none
    u64 first_not_begun = 0;               ///< no source has begun this frame or a later one
    /// Called before a stage attends: it may have been absent for less than the time between two checks.
    std::function<void()> notice;
    /// The program of a port has unmapped the run's memory.
    std::function<void(const std::string& stage)> port_left;
    /// The program of a port has ended; `for_good`: the port takes no program any more.
    std::function<void(const std::string& stage, bool for_good)> port_ended;
    std::vector<std::string> violations;
    u64 commits = 0, helped = 0, tombstones = 0, disk_waits = 0, takeovers_by_standby = 0, started_over = 0,
        welcomes = 0;
    u64 grace_ns = 5'000'000'000;  ///< how long a process lives without a supervisor
    u64 process_ns[2] = {500'000, 6'000'000};
    u64 load_ns[2] = {10'000'000, 120'000'000};
    u64 ends_at = ~u64{0};  ///< the source ends its stream before that frame
    bool over = false;      ///< no fault is injected any more

    void violated(const std::string& what);
    /// A process of the stage can read frames from now on.
    void attends(const std::string& stage);
    /// Frames may pass the stage by from now on.
    void is_absent(const std::string& stage);
};

class simulated_stage final : public program {
public:
    simulated_stage(observed_run& r, simulated_process& p, const std::vector<std::string>& environment);
    ~simulated_stage() override { ends(); }
    u64 step() override;
    void ends() noexcept override;
    void is_gone() noexcept override;

    [[nodiscard]] u32 seat() const noexcept { return incarnation_.seat; }
    [[nodiscard]] bool is_working() const noexcept { return state_ == state::working; }
    [[nodiscard]] bool has_committed() const noexcept { return committed_ > 0; }
    [[nodiscard]] bool is_standby() const noexcept { return standby_; }
    [[nodiscard]] bool is_port() const noexcept { return port_; }
    /// The program of a port leaves when it has no frame.
    void leave() noexcept { leaves_ = true; }
    /// The next frame takes forever; the heartbeat continues.
    void hang() noexcept { hangs_ = true; }

private:
    enum class state : u8 { connecting, introduced, loading, standing_by, working, left };
    enum class phase : u8 { processing, on_device, written, recorded, committed, marked };
    struct work {
        ring::job j;
        phase at = phase::processing;
        u64 due_ns = 0;
        u32 written = 0;
        bool ends_stream = false;
    };

    bool open_socket();
    void connect();
    void map_outputs(const nlohmann::json& answer, const std::vector<shm::unique_fd>& fds);
    void receive_answer();
    void watch_supervisor();
    void return_to_supervisor();
    bool join();
    void begin_work();
    u64 work_step();
    bool begin_one();
    bool has_arrived(u64 ring_sequence);
    void wait_for_link(bool waits);
    /// A write that its device may still make after its end.
    struct late_write {
        u32 output = 0, link = 0, slot = 0;
        u64 ring_sequence = 0;
    };
    void write_frame(const late_write& x);
    void write_status(u32 output, u32 slot, u64 ring_sequence, device::status_state state);
    u64 advance(work& x);
    u64 end_stream(work& x);
    bool store_on_disk(const work& x, bool mark);
    void check_inputs(const work& x);
    void die(int exit_code);
    void leave_port();
    void start_over();
    [[nodiscard]] u64 between(const u64 (&range)[2]) {
        return range[0] + run_->on->below(range[1] - range[0]);
    }
    [[nodiscard]] shm::control_block& block() noexcept { return joined_->block(); }
    [[nodiscard]] shm::incarnation& entry() noexcept { return block().entry[incarnation_.entry]; }

    observed_run* run_;
    simulated_process* process_;
    std::string stage_;
    i32 claims_as_ = 0;  ///< pid
    ring::incarnation_id incarnation_;
    int socket_ = -1;
    state state_ = state::connecting;
    bool standby_ = false, hangs_ = false;
    bool port_ = false, writes_ = false, leaves_ = false, closed_ = false;
    bool receives_ = false, waits_ = false;
    u64 ready_at_ns_ = 0, beat_ns_ = 0, committed_ = 0;
    // as stages/runner/supervisor_link.hpp
    bool ready_ = false, awaiting_welcome_ = false;
    u64 watch_due_ns_ = 0, lost_ns_ = 0;
    std::string kept_;  ///< the descriptions of the run's memory, whose descriptors are `fds_`
    std::vector<shm::unique_fd> fds_;
    std::unique_ptr<shm::segment> joined_;
    std::unique_ptr<ring::worker> worker_;
    std::unique_ptr<device::context> device_;
    std::unique_ptr<ring::helper> helper_;
    std::unique_ptr<telemetry::ledger_writer> ledger_;
    bool opened_ = false;  ///< the link of a receiving stage
    u64 delivered_read_ns_ = 0;
    std::unique_ptr<stages::delivered> delivered_;
    std::vector<work> jobs_;
    struct ring_memory {
        std::unique_ptr<device::memfd_mapping> mapped;
        u64 slot_bytes = 0;
    };
    std::vector<ring_memory> memory_;  ///< of its output rings
    std::vector<late_write> late_;
};

}  // namespace carousel::test
