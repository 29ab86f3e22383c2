#include <fmt/format.h>
#include <unistd.h>
#include <carousel/port.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "control/client.hpp"
#include "control/ps_message.hpp"
#include "control/request_message.hpp"
#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/running_time.hpp"
#include "core/user_input.hpp"
#include "device/backend.hpp"
#include "session/newest_frame.hpp"
#include "shm/doorbell.hpp"
#include "stages/sdk/port_frames.hpp"
#include "stages/sdk/port_seat.hpp"

namespace carousel {
namespace {

constexpr u64 retry_ns = 100 * ns_per_ms, longest_nap_ns = 20 * ns_per_ms;
constexpr f64 answer_patience_s = 10;

bool is_gpu(const device::context* c) { return c != nullptr && c->kind() == device_kind::cuda; }

}  // namespace

/// The memory of delivered frames, together with all objects that it needs. These objects are kept for two
/// reasons: a frame's memory may outlive the frame's port and run, and work that was enqueued for the frame
/// must be complete before the memory is freed.
struct landing {
    std::shared_ptr<device::context> on;
    std::unique_ptr<device::mapping> memory;
    std::shared_ptr<device::queue> queue;
};
/// Destroys the memory of delivered frames and preserves the thread's current device. Does nothing in a
/// forked child, whose copy stays untouched.
struct end_landing {
    delete_by_owner<landing> of;
    void operator()(landing* l) const {
        const device::kept_thread kept(of.owner.is_this() && is_gpu(l->on.get()));
        of(l);
    }
};

struct latest_port::state {
    state(std::shared_ptr<port_attachment> run, const std::string& of, latest_options o)
        : to(std::move(run)), stage(of), options(o) {}
    ~state() {
        if (is_gpu(device.get())) kept.emplace();
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;

    void attach();
    void follow();
    void settle();
    void allocate();
    [[nodiscard]] bool take();

    /// declared first, so that the thread's current GPU is also kept while the members below are destroyed
    std::optional<device::kept_thread> kept;
    std::shared_ptr<port_attachment> to;
    std::string stage;
    latest_options options;
    // Members are in order of construction, and destroyed in reverse order.
    std::shared_ptr<const run::mapped_block> block;  ///< that `newest` reads
    ring::frame_format format;
    u64 first = 0, bytes = 0;                 ///< the range of a slot that contains all planes
    std::shared_ptr<device::context> device;  ///< where frames are delivered
    std::shared_ptr<device::queue> queue;
    std::shared_ptr<landing> copy;
    u64 slot_bytes = 0;
    shm::word event_word{0};
    std::unique_ptr<device::event> event;
    std::unique_ptr<session::newest_frame>
        newest;  ///< null: there is no ring at the moment; `failure` has the reason
    latest_frame frame;
    bool delivered = false;
    u64 next = 0;  ///< frames below this ring sequence are not returned any more
    std::string failure;
    u64 next_retry_ns = 0;
    owner_process owner;
    session::discarded lost;  ///< frames discarded in rings that no longer exist
};

// Called at the start, or after a run has restarted.
void latest_port::state::attach() {
    block = to->block();
    run::mapped_ring ring = run::map_ring(block->attached->block(), to->run().socket(), stage);
    stage = ring.stage;
    bool in_host_memory = true;
    device = to->device_for(ring, in_host_memory);
    format = ring.format;
    first = ring.slot_bytes;
    u64 end = 0;
    for (const ring::plane& p : format.planes) {
        first = std::min(first, p.offset);
        end = std::max(end, p.offset + p.bytes());
    }
    bytes = end - std::min(first, end);
    event = device->make_event(&event_word);
    queue = device->make_queue();
    slot_bytes = ring.slot_bytes;
    frame.where_ = in_host_memory ? device_kind::cpu : device_kind::cuda;
    frame.queue_ = queue.get();
    allocate();
    newest = std::make_unique<session::newest_frame>(block->attached->block(), std::move(ring), *device);
}

// If the allocation fails the port keeps its previous memory, and the next call tries again.
void latest_port::state::allocate() {
    const bool in_host_memory = frame.where_ == device_kind::cpu;
    const std::shared_ptr<landing> fresh(new landing, end_landing{});
    fresh->on = device;
    fresh->memory = in_host_memory ? device->allocate_host(slot_bytes) : device->allocate(slot_bytes);
    fresh->queue = queue;
    frame.memory_.reset();
    copy = fresh;
    const device::mapping& m = *copy->memory;
    frame.planes_ = input_payload(in_host_memory ? m.host_data() : m.data(), &format, &frame.facts_.used);
    frame.memory_ = {copy, &m};
}

// A run that has restarted has another block, and everything that was derived from the old block is rebuilt.
void latest_port::state::follow() {
    to->poll();
    const u64 now = now_ns();
    if (to->ended() || (newest && block == to->block()) || now < next_retry_ns) return;
    if (newest) {
        const session::discarded& l = newest->losses();
        lost = {lost.revoked + l.revoked, lost.torn + l.torn, lost.tombstones + l.tombstones};
    }
    newest.reset();
    try {
        attach();
        failure.clear();
    } catch (const cuda_error&) {
        throw;
    } catch (const error& e) {
        failure = e.what();
        next_retry_ns = now + retry_ns;
    }
}

// Completes the work on the last frame before the next one is leased: a lease lasts only as long as its copy.
void latest_port::state::settle() {
    if (!std::exchange(delivered, false)) return;
    event->record(*queue, frame.facts_.ring_sequence);
    event->wait();
}

bool latest_port::state::take() {
    // this port and its frame own one reference each; if there are further references, the program owns them
    constexpr long own = 2;
    if (copy.use_count() > own) allocate();
    session::newest_frame::about what;
    if (!newest->take(*queue, copy->memory->data() + first, first, bytes, what)) return false;
    if (what.ring_sequence < next) return false;  // it is in the rings of a rebuilt run again
    next = what.ring_sequence + 1;
    frame.facts_ = std::move(what);
    return delivered = true;
}

void* latest_frame::stream() const noexcept {
    return where_ == device_kind::cuda ? queue_->native_stream() : nullptr;
}

latest_port::latest_port(owned_ptr<state> s) : state_(std::move(s)) {}
latest_port::latest_port(latest_port&&) noexcept = default;
latest_port& latest_port::operator=(latest_port&&) noexcept = default;
latest_port::~latest_port() = default;

latest_frame* latest_port::next(f64 timeout_s) {
    state& s = *state_;
    require_port_owner(s.owner, s.stage);
    const device::kept_thread kept(!s.newest || is_gpu(s.device.get()));
    u64 until = now_ns() + nanoseconds_of(timeout_s);
    running_time running(2 * longest_nap_ns);
    if (s.queue) s.settle();
    for (;;) {
        s.follow();
        if (s.to->ended()) return nullptr;
        shm::doorbell_word* bell = s.newest ? &s.newest->bell() : nullptr;
        const u32 seen = bell != nullptr ? shm::ticket(*bell) : 0;
        if (s.newest && s.take()) return &s.frame;
        const u64 now = now_ns();
        until = std::max(until, until + running.consume_gap(now));
        if (now >= until) return nullptr;
        const u64 nap = std::min(longest_nap_ns, until - now);
        if (bell != nullptr)
            shm::wait(*bell, seen, nap);
        else
            ::usleep(static_cast<u32>(nap / 1000));
    }
}

latest_frame* latest_port::next_or_throw() {
    state& s = *state_;
    latest_frame* f = next(s.options.patience_s);
    if (f != nullptr || s.to->ended()) return f;
    throw nothing_new(
        fmt::format("no new frame of \"{}\" in {:.3g} s: {}", s.stage, s.options.patience_s, waits_for()));
}

std::string latest_port::waits_for() const {
    return state_->newest ? state_->to->stall_reason() : state_->failure;
}

bool latest_port::ended() const noexcept { return state_->to->ended(); }
const std::string& latest_port::ending() const noexcept { return state_->to->ending(); }
const std::string& latest_port::stage() const noexcept { return state_->stage; }
const ring::frame_format& latest_port::format() const noexcept { return state_->format; }

latest_losses latest_port::losses() const noexcept {
    const session::discarded& before = state_->lost;
    const session::discarded now = state_->newest ? state_->newest->losses() : session::discarded{};
    return {before.revoked + now.revoked, before.torn + now.torn, before.tombstones + now.tombstones};
}

latest_port open_run::latest(const std::string& stage, const latest_options& options) const {
    to_->require_owner();
    const device::kept_thread kept;
    const std::vector<std::string> there = to_->stages();
    const auto is_there = [&](const std::string& ring) {
        return std::find(there.begin(), there.end(), ring) != there.end();
    };
    // In the control block, the ring of a stage's first output is named after the stage alone; only the
    // supervisor knows the names of further outputs (STAGE.OUTPUT).
    if (!stage.empty() && !is_there(stage) && !is_there(stage.substr(0, stage.find('.'))))
        throw config_error(fmt::format("no stage \"{}\" with an output in {}{}; these have one: {}", stage,
                                       name(), did_you_mean_clause(stage, there), fmt::join(there, ", ")));
    owned_ptr<latest_port::state> s(new latest_port::state(to_, stage, options));
    for (const u64 until = now_ns() + nanoseconds_of(to_->options().wait_s);; ::usleep(20'000)) try {
            to_->poll();
            s->attach();
            return latest_port(std::move(s));
        } catch (const shm_error&) {  // the supervisor is starting, or is taking over the run
            if (now_ns() >= until || to_->ended()) throw;
        }
}

ring::parameter_schema open_run::parameters() const {
    to_->require_owner();
    const nlohmann::json answer =
        run::client(to_->run()).ask(run::parameters_request{}, to_->options().wait_s, answer_patience_s);
    return run::parameters_from(answer).schema;
}
std::string open_run::reading_port(const std::string& name) const {
    to_->require_owner();
    const run::ps_answer ps = run::read_ps(
        run::client(to_->run()).ask(run::ps_request{}, to_->options().wait_s, answer_patience_s));
    std::map<std::string, std::pair<u32, u32>>
        reads;  // by port: number of inputs, and of those that are `name`
    bool is_ring = false;
    for (const run::ps_link& l : ps.links.value_or(std::vector<run::ps_link>{})) {
        const std::string by_output = l.stage.substr(0, l.stage.find('.')) + "." + l.output;
        const bool is_named = l.stage == name || (!l.output.empty() && by_output == name);
        is_ring = is_ring || is_named;
        for (const run::ps_link::reader& r : l.readers)
            if (r.port) {
                ++reads[r.stage].first;
                reads[r.stage].second += is_named ? 1 : 0;
            }
    }
    if (reads.contains(name)) return name;
    std::vector<std::string> ports;
    for (const auto& [port, count] : reads)
        if (count.first == 1 && count.second == 1) ports.push_back(port);
    if (ports.size() == 1) return ports.front();
    if (!ports.empty())
        throw config_error(
            fmt::format("the ports {} read \"{}\": name one of them instead", fmt::join(ports, ", "), name));
    if (!is_ring)
        throw config_error(fmt::format("no stage \"{}\" with an output in {}{}; these have one: {}", name,
                                       this->name(), did_you_mean_clause(name, stages()),
                                       fmt::join(stages(), ", ")));
    throw config_error(fmt::format(
        "no port of {0} reads every frame of \"{1}\": add [[stage]] name = \"out\" run = \"port\" "
        "inputs = [\"{1}\"] to the pipeline file, or read the newest frames",
        this->name(), name));
}
f64 open_run::fps() const { return to_->fps(); }
std::vector<std::string> open_run::stages() const { return to_->stages(); }
const std::string& open_run::name() const noexcept { return to_->run().name; }

open_run open(const std::string& name, const open_options& options) {
    return open_run(std::shared_ptr<port_attachment>(new port_attachment(name, options),
                                                     delete_by_owner<port_attachment>{}));
}

const shm::frame_meta& port_frame::meta() const { return seat_->session().job(); }
u64 port_frame::ring_sequence() const { return seat_->session().job().ring_sequence; }
device::device_kind port_frame::where() const { return seat_->session().where(); }
device::queue& port_frame::queue() const { return seat_->session().queue(); }
void* port_frame::stream() const {
    return where() == device::device_kind::cuda ? queue().native_stream() : nullptr;
}

input_payload reader_frame::input(std::size_t index) const {
    const port_session& session = seat_->session();
    return {session.input_slot(index), &seat_->inputs()[index], session.input_used(index)};
}
frame_metadata reader_frame::metadata() const { return frame_metadata(seat_->session().read_metadata()); }
std::span<const std::byte> port_frame::parameter_bytes() const { return seat_->session().parameter_bytes(); }
void reader_frame::set_hash(u64 hash, std::string_view name) {
    (void)seat_->session();
    hash_name_ = name;
    seat_->hash = telemetry::frame_hash(hash, hash_name_);
}
void reader_frame::commit() { seat_->commit(); }

writer_frame::~writer_frame() {
    if (seat_ != nullptr && !done_) seat_->drop();
}
output_payload writer_frame::output() const {
    port_session& session = seat_->session();
    return {session.output_slot(), &seat_->output(), &session.header().used};
}
frame_metadata writer_frame::metadata() const {
    shm::frame_header& h = seat_->session().header();
    return {h.metadata, h.metadata_bytes};
}
void writer_frame::set_capture_ns(u64 ns) { seat_->session().set_capture_ns(ns); }
void writer_frame::commit() {
    done_ = true;
    seat_->commit();
}

reader_port::reader_port(owned_ptr<port_seat> s) : seat_(std::move(s)), frame_(seat_.get()) {}
reader_port::reader_port(reader_port&&) noexcept = default;
reader_port& reader_port::operator=(reader_port&&) noexcept = default;
reader_port::~reader_port() = default;
bool reader_port::ended() const noexcept { return seat_->ended(); }
const std::string& reader_port::stage() const noexcept { return seat_->stage(); }
const ring::frame_format& reader_port::format(std::size_t input) const { return seat_->inputs().at(input); }
const std::vector<std::string>& reader_port::inputs() const noexcept { return seat_->input_names(); }
void reader_port::throw_wait_timeout() const { seat_->throw_wait_timeout(); }
reader_frame* reader_port::next(f64 timeout_s) {
    return seat_->next(nanoseconds_of(timeout_s)) ? &frame_ : nullptr;
}
reader_frame* reader_port::next_or_throw() {
    if (seat_->next(seat_->patience_ns())) return &frame_;
    if (!seat_->ended()) seat_->throw_wait_timeout();
    return nullptr;
}

writer_port::writer_port(owned_ptr<port_seat> s) : seat_(std::move(s)) {}
writer_port::writer_port(writer_port&&) noexcept = default;
writer_port& writer_port::operator=(writer_port&&) noexcept = default;
writer_port::~writer_port() = default;
bool writer_port::ended() const noexcept { return seat_->ended(); }
const std::string& writer_port::stage() const noexcept { return seat_->stage(); }
const ring::frame_format& writer_port::format() const { return seat_->output(); }
void writer_port::throw_wait_timeout() const { seat_->throw_wait_timeout(); }
void writer_port::end() { seat_->end(); }
writer_frame writer_port::next(f64 timeout_s) {
    return writer_frame(seat_->next(nanoseconds_of(timeout_s)) ? seat_.get() : nullptr);
}
writer_frame writer_port::next() {
    if (seat_->next(seat_->patience_ns())) return writer_frame(seat_.get());
    if (!seat_->ended()) seat_->throw_wait_timeout();
    return writer_frame(nullptr);
}

// Saves the current device here and not in the seat's constructor, because a seat that is refused is
// destroyed while the exception unwinds.
reader_port open_run::reader(const std::string& stage, const port_options& options) const {
    to_->require_owner();
    const device::kept_thread kept;
    return reader_port(owned_ptr<port_seat>(new port_seat(to_, stage, false, options)));
}
writer_port open_run::writer(const std::string& stage, const port_options& options) const {
    to_->require_owner();
    const device::kept_thread kept;
    return writer_port(owned_ptr<port_seat>(new port_seat(to_, stage, true, options)));
}

}  // namespace carousel
