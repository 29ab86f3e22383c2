#include "supervisor/processes/start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "control/stage_message.hpp"
#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "os/spawn.hpp"
#include "shm/process_id.hpp"
#include "supervisor/plan/depth_plan.hpp"
#include "supervisor/processes/adoption.hpp"
#include "supervisor/processes/port_seats.hpp"
#include "supervisor/processes/process_events.hpp"
#include "supervisor/processes/retire.hpp"
#include "supervisor/processes/standby.hpp"
#include "supervisor/stores/checkpoint_store.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;

seat* free_seat_for(process_table& t, const std::string& stage, std::string& why) {
    why = fmt::format("the pipeline {} has no stage {}", t.setup->name, stage);
    for (auto& s : t.seats) {
        if (t.setup->stages[s->stage].spec.name != stage) continue;
        why =
            fmt::format("stage {} already has a process: run `carousel down {}` first, then start it by hand",
                        stage, stage);
        const bool vacant =
            s->machine.state() == seat_state::down || s->machine.state() == seat_state::failed;
        if (vacant && !s->now) return s.get();
    }
    return nullptr;
}

std::string attach_answer(const process_table& t, const seat& s, const process& p, std::vector<int>& fds) {
    const stage_setup& st = t.setup->stages[s.stage];
    const shm::stage_block& b = t.made->stage[s.stage];
    run::attach_message a;
    a.run_id = t.made->run_id;
    a.runtime_directory = t.setup->directory;
    a.output_directory = t.setup->output_directory;
    a.stage = st.spec.name;
    a.incarnation = p.incarnation;
    a.standby = &p == s.standby.get();
    a.width = t.setup->width;
    a.height = t.setup->height;
    a.supervisor_grace_s = t.setup->supervisor_grace_s;
    a.kept = t.memory->describe_all(fds);
    a.settings = st.settings_of(s.instance);
    a.asked_device = st.spec.devices.empty() ? st.spec.device : st.device_name_of(s.instance);
    a.folder = t.setup->folder;
    a.depth = depth_rule_of(*t.setup, s.stage, s.instance);
    a.graphs = t.setup->graphs;
    a.checkpoint_every = t.setup->has_state() ? t.setup->checkpoint_every : 0;
    a.checkpoint_folder = t.setup->checkpoint_folder;
    if (t.checkpoints != nullptr) a.checkpoint = t.checkpoints->restored_at();
    for (u32 o = 0; o < st.outputs(); ++o) a.outputs.push_back({st.ring(o).output, st.ring(o).format});
    if (t.setup->parameters.schema) a.parameters = t.setup->parameters.schema.to_json();
    a.device = st.device_of(s.instance);
    for (std::size_t i = 0; i < st.spec.input_indices.size(); ++i) {
        const stage_setup& from = t.setup->stages[st.spec.input_indices[i]];
        const u32 output = st.output_of_input(i);
        a.inputs.push_back({from.ring_name(output), from.ring(output).format});
    }
    for (std::size_t i = 0; i < st.spec.sampled_indices.size(); ++i) {
        const u32 from = st.spec.sampled_indices[i];
        a.sampled.push_back({st.spec.sampled_inputs[i],
                             t.setup->stages[from].ring(st.output_of_sampled(i)).format, from < s.stage});
    }
    const auto block = [&](bool asset, u32 index) -> json {
        for (const json& j : a.kept)
            if (j["asset"] == asset && j["index"] == index) return j;
        throw shm_error(fmt::format("there is no memory for {} {}", asset ? "asset" : "link", index));
    };
    const auto add_link = [&](u32 link) {
        json j = block(false, link);
        j["link"] = link;
        a.links.push_back(std::move(j));
    };
    for (u32 i = 0; i < b.inputs; ++i) add_link(b.input_link[i]);
    for (u32 i = 0; i < std::min(b.sampled_inputs, shm::max_sampled_inputs); ++i) add_link(b.sampled_link[i]);
    for (u32 i = 0; i < std::min(b.outputs, shm::max_outputs); ++i) add_link(b.output_link[i]);
    for (u32 k = 0; k < t.setup->assets.size(); ++k) {
        const asset_setup& asset = t.setup->assets[k];
        if (std::find(asset.users.begin(), asset.users.end(), s.stage) == asset.users.end()) continue;
        json j = block(true, k);
        j["index"] = k;
        j["name"] = asset.name;
        a.assets.push_back(std::move(j));
    }
    if (p.port) {
        a.control = static_cast<int>(fds.size());
        a.pid = p.pid;
        fds.push_back(t.block_fd);
    }
    return json(a).dump();
}

void reply_to_hello(process_table& t, seat& s, process& p, int connection) {
    p.connection = connection;
    p.attached_ns = now_ns();
    std::vector<int> fds;
    const std::string text = attach_answer(t, s, p, fds);
    // If the send fails because the other side exits, the connection closes, and the death is detected in the
    // usual way.
    if (!shm::send_message(connection, text, fds))
        t.log_line(
            fmt::format("{}: cannot send the answer to its hello message: {}", s.label, errno_text(errno)));
}

std::string accept_as(process_table& t, seat& s, process& p, int connection, shm::peer_process peer) {
    if (std::string why = adopt_process(t, s, p, std::move(peer)); !why.empty()) return why;
    reply_to_hello(t, s, p, connection);
    return "";
}

}  // namespace

std::string accept_stage(process_table& t, int connection, shm::peer_process peer,
                         const run::hello_message& hello) {
    seat* s = nullptr;
    const ring::incarnation_id& incarnation = hello.incarnation;
    const u32 index = incarnation.seat;
    if (t.ending || t.paused) return "the run is ending";
    if (!t.memory_there) return "the run is being taken over by a second supervisor: try again";
    if (index != shm::none) {
        if (index < t.seats.size()) s = t.seats[index].get();
        const auto waits_for = [&](const std::unique_ptr<process>& p) {
            return p && p->incarnation.entry == incarnation.entry &&
                   p->incarnation.epoch == incarnation.epoch && p->connection < 0;
        };
        if (s != nullptr && waits_for(s->standby))
            return accept_as(t, *s, *s->standby, connection, std::move(peer));
        if (s == nullptr || !waits_for(s->now)) return "the seat already has a successor";
    } else {
        std::string why;
        s = free_seat_for(t, hello.stage, why);
        if (s == nullptr) return why;
        if (!s->successor) s->successor = ring::appoint(*t.c, s->index);
        if (!s->successor) return "too many processes of this run have not ended yet: try again";
        ring::revoke(*t.c, s->index, 0);
        auto p = std::make_unique<process>();
        p->incarnation = s->successor;
        p->by_hand = p->tool = true;  // a user is debugging the process, so it has no deadline
        p->spawned_ns = now_ns();
        if (why = adopt_process(t, *s, *p, std::move(peer)); !why.empty())
            return why;  // the seat is not taken yet
        s->successor = {};
        s->now = std::move(p);
        s->machine.on(seat_event::spawned, now_ns());
        reply_to_hello(t, *s, *s->now, connection);
        return "";
    }
    return accept_as(t, *s, *s->now, connection, std::move(peer));
}

void answer_detached(process_table& t, seat& s) {
    try {
        reply_to_hello(t, s, *s.now, s.now->connection);
    } catch (const error& e) {
        t.log_line(
            fmt::format("{} (pid {}) can't start over, so it is ended: {}", s.label, s.now->pid, e.what()));
        shm::signal_pidfd(s.now->pidfd.get(), SIGKILL);
    }
    crash_here(crash_point::stage_reattached);
}

std::string accept_port(process_table& t, int connection, shm::peer_process peer,
                        const run::hello_message& hello, std::vector<shm::unique_fd>& fds, bool& again) {
    seat* s = nullptr;
    if (std::string why = seat_port(t, std::move(peer), hello, fds, again, s); !why.empty()) return why;
    reply_to_hello(t, *s, *s->now, connection);
    return "";
}

std::string accept_stage_return(process_table& t, int connection, shm::peer_process peer,
                                const run::return_message& message) {
    const u32 index = message.incarnation.seat;
    if (index >= t.seats.size()) return "the run has no such seat";
    seat& s = *t.seats[index];
    const u32 entry = message.incarnation.entry, epoch = message.incarnation.epoch;
    const auto is_it = [&](const std::unique_ptr<process>& p) {
        // The process's pidfd was opened before the peer connected, and the process is alive, so the pid
        // cannot have been reused.
        const bool same = p && p->incarnation.entry == entry && p->pid == peer.id.pid && peer.pidfd &&
                          p->connection < 0 && !p->ended && !has_ended(p->pidfd.get());
        // epoch 0: the process was a standby when it sent the message, and may have been promoted since then
        return same && (p->incarnation.epoch == epoch || epoch == 0);
    };
    const bool standby = is_it(s.standby);
    if (!standby && !is_it(s.now)) return "the seat already has a successor";
    process& p = standby ? *s.standby : *s.now;
    shm::unique_fd output;
    std::vector<int> fds;
    if (!p.tool) {
        if (p.log.fd() >= 0) t.loop->forget(p.log.fd());
        p.log = log_pipe::make(output);
        fds.push_back(output.get());
        watch_log(t, s, p);
    }
    p.connection = connection;
    if (!shm::send_message(connection, json(run::welcome_message{fds.empty() ? -1 : 0}).dump(), fds))
        t.log_line(fmt::format("{}: cannot accept its return: {}", s.label, errno_text(errno)));
    if (standby) {
        p.standing_by = p.how.was_ready = p.standing_by || message.ready;
        if (p.how.was_ready) mark_ready(p);
        return "";
    }
    const bool live = ring::entry_word::of(ring::load(t.c->entry[p.incarnation.entry].identity)).state ==
                      ring::entry_state::live;
    if (live) {
        mark_ready(p);
        if (s.machine.state() == seat_state::starting)
            apply_seat_action(t, s, s.machine.on(seat_event::ready, now_ns()), nullptr);
    }
    // When a paused stage lost its parent, the kernel continued the stage (an orphaned process group gets
    // SIGHUP and SIGCONT), so the stage is stopped again.
    if (s.machine.state() == seat_state::stopped) shm::signal_pidfd(p.pidfd.get(), SIGSTOP);
    return "";
}

}  // namespace carousel::supervisor
