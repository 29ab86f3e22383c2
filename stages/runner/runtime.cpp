#include "stages/runner/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "device/canary.hpp"
#include "device/cpu/pool.hpp"
#include "parameters/parameter_union.hpp"
#include "ring/event_domain.hpp"
#include "ring/own_pages.hpp"
#include "run/checkpoint.hpp"
#include "shm/doorbell.hpp"
#include "stages/runner/exit_note.hpp"
#include "stages/runner/fault_recorder.hpp"

namespace carousel::stages {
namespace {

constexpr double asset_timeout_s = 120;
static_assert(max_stage_outputs == shm::max_outputs);

std::string describe_outputs(const std::vector<output_description>& all) {
    std::string text;
    for (const output_description& o : all)
        text += (text.empty() ? "" : ", ") + (o.name.empty() ? "" : o.name + " = ") + o.describe();
    return text.empty() ? "nothing" : text;
}

bool on_another_gpu(const device::memory_handle& memory, const device::device_id& own) {
    return memory.kind == device::memory_kind::vmm && !memory.uuid.empty() && memory.uuid != own.uuid;
}

std::optional<u64> number(const char* name) {
    const char* text = std::getenv(name);
    if (text == nullptr) return {};
    return std::strtoull(text, nullptr, 10);
}

shm::block_guard requested_guard() {
    const char* text = std::getenv("CAROUSEL_TEST_BLOCK_GUARD");
    const std::string_view asked = text == nullptr ? "" : text;
    if (asked == "off") return shm::block_guard::off;
    if (asked == "pages") return shm::block_guard::pages;
    if (asked == "emulated") return shm::block_guard::emulated;
    return shm::block_guard::keys;
}

}  // namespace

runtime::runtime(attachment a, stage& s, const runtime_sources& from)
    : attachment_(std::move(a)),
      supervisor_(attachment_),
      hooks_(from.hooks),
      domain_(static_cast<u32>(number("CAROUSEL_MPS_CLIENT").value_or(0))),
      control_(&from.control(attachment_.run_id)),
      delivered_(*control_, attachment_.runtime_directory, control_->first_ring_sequence,
                 attachment_.checkpoint_every > 0 ? attachment_.checkpoint_folder : "") {
    crash_here(crash_point::segment_mapped);
    if ((attachment_.standby ? ring::claim_standby(control(), incarnation())
                             : ring::claim(control(), incarnation())) != ring::claim_result::ok) {
        log::info("the seat already has a successor: exiting");
        die(exit_code::revoked);
    }
    open_fault_record(attachment_.runtime_directory, attachment_.incarnation.entry);
    install_exit_note(entry());
    crash_here(crash_point::entry_claimed);
    with_exit_note([&] { set_up(s, from); });
}

void runtime::set_up(stage& s, const runtime_sources& from) {
    close_block();
    const settings own = settings::from_json(attachment_.settings_json);
    configuration with{attachment_.stage,  attachment_.width, attachment_.height,       &own,
                       attachment_.inputs, control().fps,     attachment_.asked_device, attachment_.folder};
    for (const sampled_input_description& i : attachment_.sampled)
        with.sampled.push_back({i.stage, i.described ? i.format : frame_format{}});
    const description d = s.configure(with);
    own.refuse_unread();
    check_reads(d, with);
    check_output(d);
    check_parameters(d);
    parameter_type_ = d.parameters.type;
    parameter_bytes_ = d.parameters.bytes;
    if (d.finish_threads > 1 && (stage_block().flags & shm::stage_flag::latest) != 0)
        log::warning(
            "finish_threads = {} is ignored: a stage in a latest group finishes one frame at a time, the "
            "newest",
            d.finish_threads);
    finish_threads_ = d.finish_threads != 0 ? d.finish_threads : device::cpu::usable_cores();
    same_work_ = d.same_work;
    wants_tombstones_ = d.wants_tombstones;
    maps_peer_rings_ = d.maps_peer_rings;
    of_others_ = access_to_inputs(d);
    for (const asset_description& a : d.makes) makes_.push_back(a.name);
    check_device(d);
    check_ends(d);
    crash_here(crash_point::configured);
    // On the CPU each stage has one thread per core, and the threads of idle stages sleep. Which stage is
    // slow depends on the scene, and the slow stage should be able to use all cores that the other stages
    // leave idle.
    context_ = from.opened ? from.opened : from.device(attachment_.device, 0);
    crash_here(crash_point::device_open);
    {
        const shm::block_open open;
        entry().device = static_cast<u32>(context_->kind());
    }
    queue_ = context_->make_queue();
    map_links();
    crash_here(crash_point::links_mapped);
    make_events();
    crash_here(crash_point::events_published);
}

// A stage rebuilt during the run must still write the formats for which its output rings were made.
void runtime::check_output(const description& d) const {
    check_outputs(d);
    const std::vector<output_description> mine = all_outputs(d);
    const bool has_state = (stage_block().flags & shm::stage_flag::state) != 0;
    if (mine == attachment_.outputs && has_state == !d.state.empty()) return;
    throw config_error(fmt::format(
        "stage {} writes {}, but the downstream {} {} created for {}: restart the pipeline to change it",
        attachment_.stage, describe_outputs(mine), attachment_.outputs.size() > 1 ? "rings" : "ring",
        attachment_.outputs.size() > 1 ? "were" : "was", describe_outputs(attachment_.outputs)));
}

// A stage whose program was built again during the run may read only parameters that the run has.
void runtime::check_parameters(const description& d) const {
    if (!d.parameters || ring::includes(attachment_.parameters, d.parameters)) return;
    throw config_error(fmt::format(
        "stage {} takes parameters of {}, but the run was started with {}: restart the pipeline to change it",
        attachment_.stage, d.parameters.describe(),
        attachment_.parameters ? attachment_.parameters.describe() : "none"));
}

// `carousel validate` also reports this, but a program that was rebuilt since then may support fewer devices.
void runtime::check_device(const description& d) const {
    const bool cuda = attachment_.device.kind == device::device_kind::cuda;
    if (d.device == runs_on::any || (d.device == runs_on::cuda) == cuda) return;
    throw config_error(fmt::format("stage {} runs only on {}, but it was placed on {}: set device = \"{}\"",
                                   attachment_.stage, cuda ? "the CPU" : "a GPU", cuda ? "a GPU" : "the CPU",
                                   cuda ? "cpu" : "cuda:0"));
}

void runtime::require_parameters(std::string_view type, std::size_t bytes) const {
    if (type == parameter_type_ && bytes == parameter_bytes_) return;
    throw config_error(
        fmt::format("stage {} reads parameters of type {} ({} bytes), but configure() has named {}: set "
                    "description::parameters to that type's schema()",
                    attachment_.stage, type, bytes, parameter_type_.empty() ? "none" : parameter_type_));
}

// If a stage is rebuilt during the run, the new program may end its stream only if the program with which the
// run was started may end it too: if the old program could not end it, the check of the pipeline has not
// covered the stages that depend on an end of the stream.
void runtime::check_ends(const description& d) const {
    if (!d.ends || (stage_block().flags & shm::stage_flag::ends) != 0) return;
    throw config_error(
        fmt::format("stage {} may now end its stream, but the run was started for a stage that does not: "
                    "restart the pipeline to change it",
                    attachment_.stage));
}

shm::stage_block& runtime::stage_block() const noexcept {
    return control().stage[std::min(control().seat[incarnation().seat].stage, shm::max_stages - 1)];
}

u32 runtime::instance() const { return control().seat[incarnation().seat].instance; }

mapped_link runtime::map_link(u32 link, device::access wanted) {
    const attached_block& b = session::block_of_link(attachment_.links, link);
    mapped_link m = session::map_link(control(), b, *context_, wanted);
    const bool writes = wanted == device::access::write;
    if (m.canary_bytes != 0 && writes) m.planted.resize(m.slots);
    if (b.memory.pieces > 0 && writes && !m.memory->has_gaps())
        log::warning(
            "the ring {} is mapped without guard pages, because this GPU uses other addresses for host "
            "memory than the CPU. A write of this stage beyond a slot can therefore corrupt another frame",
            control().link[link].name);
    const bool peer = hooks_.peer_rings || on_another_gpu(b.memory, attachment_.device);
    if (peer && !maps_peer_rings_) m.staging = context_->allocate(m.slot_bytes);
    return m;
}

void runtime::map_links() {
    const shm::stage_block& s = stage_block();
    for (u32 i = 0; i < s.inputs; ++i) inputs_.push_back(map_link(s.input_link[i], of_others_));
    if (std::min(s.outputs, shm::max_outputs) != attachment_.outputs.size())
        throw shm_error(fmt::format(
            "stage {} has {} output rings but received {}: the control block is damaged, restart the run",
            attachment_.stage, s.outputs, attachment_.outputs.size()));
    for (std::size_t k = 0; k < attachment_.outputs.size(); ++k)
        outputs_.push_back(map_link(s.output_link[k], device::access::write));
    if (mapped_link* const of_states = states()) {
        of_states->staging.reset();  // both states of a frame are in the ring itself
        no_state_ = context_->allocate(of_states->slot_bytes);
        map_previous_states(of_states->index);
        load_checkpoint();
    }
    if (std::min(s.sampled_inputs, shm::max_sampled_inputs) != attachment_.sampled.size())
        throw shm_error(fmt::format(
            "stage {} has {} sampled inputs but received {}: the control block is damaged, restart the run",
            attachment_.stage, s.sampled_inputs, attachment_.sampled.size()));
    for (std::size_t i = 0; i < attachment_.sampled.size(); ++i) {
        sampled_inputs_.push_back(map_link(s.sampled_link[i], device::access::read));
        // A sampled frame is always copied as a whole, without a staging slot.
        sampled_inputs_.back().staging.reset();
    }
    map_headers();
    publish_guard();
}

// The ring of states is mapped once more, for reading: a wild write to the previous state faults. Memory of
// kind ipc has one address per process.
void runtime::map_previous_states(u32 link) {
    const attached_block& b = session::block_of_link(attachment_.links, link);
    if (b.memory.kind != device::memory_kind::ipc)
        previous_states_.emplace(session::map_link(control(), b, *context_, of_others_));
}

const std::byte* runtime::state_of(const ring::job& j) noexcept {
    return states()->slot(j.output[outputs_.size() - 1].index) + before_payload;
}

std::size_t runtime::state_bytes() noexcept { return states()->slot_bytes - before_payload; }

u64 runtime::state_layout() const { return run::layout_of(output_format(outputs_.size() - 1).to_json()); }

// While this process started, the one before it (or, if this is a standby, the holder of the seat) may have
// made states, and newer checkpoints may have replaced the one that was there. The newest state is READY. A
// second look finds the state that replaced it during the first.
bool runtime::has_newer_state() {
    const ring::link_ref all(control(), states()->index);
    for (u32 k = 0; k < 2 * all.slots(); ++k)
        if (all.ready_slot(k % all.slots())) return true;
    return false;
}

void runtime::load_checkpoint() {
    const u64 first = attachment_.checkpoint;
    if (first == 0) return;
    const auto state = run::read_state(attachment_.checkpoint_folder,
                                       {attachment_.stage, first, state_layout()}, state_bytes());
    if (!state && has_newer_state()) return;
    if (!state)
        throw output_error(
            fmt::format("the state {}, from which the stage continues, is missing: end the run and continue "
                        "with --first at another frame, or remove the folder",
                        run::state_path(attachment_.checkpoint_folder, attachment_.stage, first)));
    restored_at_ = first;
    if (state->empty()) return;
    const std::unique_ptr<device::mapping> piece = context_->allocate_host(state->size());
    std::memcpy(piece->host_data(), state->data(), state->size());
    queue_->copy(no_state_->data() + before_payload, piece->data(), state->size());
    queue_->drain();
}

// Called before the stage's own code runs, and before any thread is created (except threads of the stage's
// constructor), because the right to a key (PKRU) is per thread and inherited at creation.
void runtime::close_block() {
    if (hooks_.block_guard == shm::block_guard::off) return;
    const ring::page_list own = ring::pages_of(control(), incarnation(), attachment_.depth.token);
    guard_ = shm::guard_block(control(), own.pages(), hooks_.block_guard);
}

// This process may write the headers of its stage's output rings, also as a standby; all other headers are
// read-only.
void runtime::map_headers() {
    const shm::stage_block& s = stage_block();
    for (u32 k = 0; k < std::min(s.outputs, shm::max_outputs) && guard_ == shm::block_guard::off; ++k)
        if (s.output_link[k] < shm::max_links) shm::open_frames(control(), s.output_link[k]);
    guard_headers(control());
}

// Each slot of the first output has one event, which is created once. The event's handle goes into this
// incarnation's entry, which no process overwrites while a job word contains the incarnation's epoch. The
// event is recorded after all of a job's work, so it also covers the work for the other outputs (C18).
void runtime::make_events() {
    if (!outputs_.empty()) {
        const mapped_link& first = outputs_.front();
        for (u32 k = 0; k < first.slots; ++k) {
            events_.push_back(context_->make_event(&control().link[first.index].event_tag[k]));
            const device::event::handle h = events_.back()->export_handle();
            const shm::block_open open;
            std::memcpy(control().event_handle[incarnation().entry][k], h.data(), h.size());
        }
    } else {
        for (u32 k = 0; k < in_flight(); ++k) events_.push_back(context_->make_event(nullptr));
    }
    const shm::block_open open;
    entry().events_published.store(ring::published_in(domain()), std::memory_order_release);
}

device::event& runtime::event_of(u32 output_slot, u32 lane) {
    return outputs_.empty() ? *events_[lane] : *events_[output_slot];
}

const attached_block& runtime::asset_block(std::string_view name) const {
    for (const attached_block& b : attachment_.assets)
        if (b.name == name && b.index < shm::max_assets) return b;
    throw config_error(fmt::format("stage {} requests the asset {}, which no stage of this pipeline produces",
                                   attachment_.stage, name));
}

bool runtime::reaches_peer_memory() const noexcept {
    const auto is_peer = [](const mapped_link& l) { return l.staging != nullptr; };
    return std::any_of(outputs_.begin(), outputs_.end(), is_peer) ||
           std::any_of(inputs_.begin(), inputs_.end(), is_peer);
}

bool runtime::plants_canaries() const noexcept {
    return std::any_of(outputs_.begin(), outputs_.end(),
                       [](const mapped_link& l) { return l.canary_bytes != 0; });
}

std::span<std::byte> runtime::map_for_loading(const attached_block& block) {
    std::unique_ptr<device::mapping> m = context_->map(block.memory, device::access::write);
    const std::span<std::byte> out(m->data(), control().asset[block.index].bytes);
    assets_[block.name] = std::move(m);
    return out;
}

// A GPU stage would read shared host memory over the bus, and another GPU's memory over a link, at every
// access. So data that is read in every frame is copied once to the stage's own GPU.
std::span<const std::byte> runtime::map_for_reading(const attached_block& block) {
    std::unique_ptr<device::mapping> m = context_->map(block.memory, of_others_);
    const u64 bytes = control().asset[block.index].bytes;
    if (context_->kind() == device::device_kind::cuda && (block.memory.kind == device::memory_kind::memfd ||
                                                          on_another_gpu(block.memory, attachment_.device))) {
        std::unique_ptr<device::mapping> local = context_->allocate(bytes);
        queue_->copy(local->data(), m->data(), bytes);
        queue_->drain();
        m = std::move(local);  // the shared memory is no longer mapped
    } else {
        guard_asset(block.name, *m);
    }
    guard(*m, ring::wild_write_target::asset, block.index, 0, 0);
    const std::span<const std::byte> out(m->data(), bytes);
    assets_[block.name] = std::move(m);
    return out;
}

std::span<const std::byte> runtime::asset(std::string_view name) {
    if (const auto known = assets_.find(name); known != assets_.end())
        return {known->second->data(), control().asset[asset_block(name).index].bytes};
    const attached_block& b = asset_block(name);
    shm::asset_block& a = control().asset[b.index];
    const u64 until = now_ns() + static_cast<u64>(asset_timeout_s * 1e9);
    while (!ring::asset_is_ready(control(), b.index)) {
        if (now_ns() > until)
            throw shm_error(fmt::format(
                "asset {} was not loaded by stage {} within {} s: see that stage's log", a.name,
                control().stage[std::min(a.maker_stage, shm::max_stages - 1)].name, asset_timeout_s));
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return map_for_reading(b);
}

// EMPTY -> LOADING(epoch, seat) -> READY, by CAS. A loader that dies leaves LOADING, which the supervisor
// resets after the loader is fenced (its device may write until then). A process that represents the
// instances of the stage on another host fills no asset.
void runtime::load_assets(stage& s) {
    for (const attached_block& b : attachment_.assets) {
        shm::asset_block& a = control().asset[b.index];
        if (a.maker_stage != control().seat[incarnation().seat].stage ||
            std::find(makes_.begin(), makes_.end(), b.name) == makes_.end())
            continue;
        const u64 until = now_ns() + static_cast<u64>(asset_timeout_s * 1e9);
        for (;;) {
            if (ring::asset_is_ready(control(), b.index)) break;
            if (ring::begin_loading(control(), b.index, incarnation())) {
                crash_here(crash_point::asset_loading);
                const std::span<std::byte> memory = map_for_loading(b);
                s.load_asset(a.name, memory, *this);
                queue_->drain();
                crash_here(crash_point::asset_loaded);
                assets_.erase(b.name);  // the asset is mapped again for reading, as every other stage maps it
                if (!ring::finish_loading(control(), b.index, incarnation())) die(exit_code::revoked);
                break;
            }
            if (now_ns() > until)
                throw shm_error(fmt::format(
                    "asset {} is being loaded by another process and is not ready in time", a.name));
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
    }
}

// Everything is prepared, and the standby now sleeps. If its supervisor dies, the next supervisor finds the
// standby by the standby's entry; if no other supervisor follows, the standby's heartbeat ends the standby.
// If the process crashes here nothing is lost, because an entry with epoch 0 owns no word.
bool runtime::stand_by() {
    {
        const shm::block_open open;
        entry().live_since_ns.store(now_ns(), std::memory_order_release);
    }
    supervisor_.send_ready();
    crash_here(crash_point::standing_by);
    shm::doorbell_word& bell = control().seat[incarnation().seat].bell;
    for (;;) {
        const u32 seen = shm::ticket(bell);
        // read before the words, which may be damaged
        if (supervisor_.is_to_start_over()) return false;
        if (const u32 epoch = ring::promoted_epoch(control(), incarnation()); epoch != 0) {
            attachment_.incarnation.epoch = epoch;
            supervisor_.set_epoch(epoch);
            log::info("took over");
            crash_here(crash_point::took_over);
            return true;
        }
        shm::wait(bell, seen, shm::max_sleep_ns);
    }
}

void runtime::wake_standby() noexcept {
    const shm::block_open open;
    shm::ring(control().seat[incarnation().seat].bell);
}

void runtime::go_live() {
    crash_here(crash_point::prepared);
    if (!ring::go_live(control(), incarnation())) die(exit_code::revoked);
    crash_here(crash_point::live);
    supervisor_.send_ready();
    crash_here(crash_point::ready_reported);
}

test_hooks test_hooks::of_environment() {
    return {number("CAROUSEL_TEST_TEAR"), number("CAROUSEL_TEST_HOLD_LEASE"),
            std::getenv("CAROUSEL_TEST_PEER_RINGS") != nullptr, requested_guard(),
            std::getenv("CAROUSEL_TEST_INPUTS_WRITABLE") != nullptr};
}

}  // namespace carousel::stages
