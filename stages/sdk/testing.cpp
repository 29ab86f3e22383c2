#include <carousel/testing.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "ledger/ledger.hpp"
#include "stages/sdk/configuration.hpp"
#include "stages/sdk/process_call.hpp"

namespace carousel::testing {

/// The environment of prepare(); also owns the device.
struct chain::world : environment {
    explicit world(const chain_options& o)
        : options(o), device(device::open(o.device, o.cpu_threads)), work(device->make_queue()) {}

    device::context& context() override { return *device; }
    device::queue& queue() override { return *work; }
    std::span<const std::byte> asset(std::string_view name) override {
        const auto at = assets.find(name);
        if (at == assets.end()) throw shm_error(fmt::format("no stage produces the asset {}", name));
        return {at->second->data(), at->second->bytes()};
    }
    [[nodiscard]] std::string runtime_directory() const override { return options.runtime_directory; }
    [[nodiscard]] std::string output_directory() const override {
        return make_output_directory(options.output_directory);
    }
    [[nodiscard]] u32 instance() const override { return 0; }
    [[nodiscard]] u32 epoch() const override { return options.epoch; }
    [[nodiscard]] u32 in_flight() const override { return options.in_flight; }

    chain_options options;
    std::unique_ptr<device::context> device;
    std::unique_ptr<device::queue> work;
    std::map<std::string, std::unique_ptr<device::mapping>, std::less<>> assets;
};

/// A stage, or a stand-in for one (without an object).
struct chain::seat {
    std::string name;
    std::unique_ptr<stage> object;
    carousel::settings settings;
    carousel::description description;
    std::vector<std::string> inputs, sampled;
    std::optional<u64> newest;                         // the stage's last frame; empty: there was no frame
    std::unique_ptr<telemetry::ledger_writer> ledger;  // only a sink has a ledger, as in the runner
    std::map<u64, u64> hashes;                         // of a sink's frames
    /// What a stage has made for one frame in flight.
    struct made_frame : shm::frame_meta {
        std::vector<u64> sampled_from;  // for each sampled input, the number of the frame that was used
        std::vector<std::unique_ptr<device::mapping>> slots;  // one for each output
        std::array<shm::used_extents, max_stage_outputs> used{};
        std::array<std::byte, shm::max_metadata_bytes> metadata{};
        u32 metadata_bytes = 0;
    };
    std::vector<made_frame> frames;  // chain::place_ is the index of the current element
    /// The states of the last frames, and the zeros before the first one.
    struct kept_state {
        std::unique_ptr<device::mapping> memory;
        std::optional<u64> frame_number;  // empty: no frame has made it
    };
    frame_format state_format;
    std::vector<kept_state> states;
    std::size_t newest_state = 0;
    shm::used_extents whole{};  // of a state, whose planes are always used as a whole
};

/// An output of a stage: "fork" is the first output, "fork.square" the output of that name.
struct chain::made_output {
    seat* of;
    std::size_t output, place;
    bool is_state = false;
    [[nodiscard]] const frame_format& format() const {
        return is_state ? of->state_format : of->description.outputs[output];
    }
    [[nodiscard]] seat::made_frame& made() const { return of->frames.at(place); }
    [[nodiscard]] std::byte* data() const {
        return is_state ? of->states.at(of->newest_state).memory->data() : made().slots.at(output)->data();
    }
    [[nodiscard]] shm::used_extents& used() const { return is_state ? of->whole : made().used[output]; }
    [[nodiscard]] output_payload payload() const {
        return output < made().slots.size() ? output_payload(data(), &format(), &used()) : output_payload();
    }
};

class chain::chain_frame : public frame {
public:
    chain_frame(chain& c, seat& s, u64 frame_number, std::span<const std::byte> parameters,
                std::string reason)
        : chain_(c),
          seat_(s),
          made_(s.frames.at(c.place_)),
          parameters_(parameters),
          reason_(std::move(reason)) {
        made_.frame_number = frame_number;
        made_.time_s = static_cast<f64>(frame_number) / chain_.options_.fps;
        for (const std::string& name : seat_.sampled) {
            const seat& from = *chain_.find_ring(name).of;
            const seat::made_frame& of = from.frames.at(chain_.place_);
            ring::frame_facts& facts = sampled_frames_.emplace_back();
            facts.meta() = of;
            facts.ring_sequence = facts.frame_number = from.newest.value_or(shm::no_sampled_frame);
            facts.time_s = static_cast<f64>(facts.frame_number) / chain_.options_.fps;
            if (from.object) facts.parameters.assign(parameters_.begin(), parameters_.end());
            facts.set(std::span(of.metadata).first(of.metadata_bytes), nullptr);
        }
    }
    [[nodiscard]] const shm::frame_meta& meta() const noexcept override { return made_; }
    [[nodiscard]] std::span<const std::byte> parameter_values(std::string_view type,
                                                              std::size_t bytes) const override {
        const parameter_schema& named = seat_.description.parameters;
        if (named.type != type || named.bytes != bytes ||
            (!parameters_.empty() && parameters_.size() < bytes))
            throw config_error(
                fmt::format("stage {} reads parameters of type {} ({} bytes), but configure() names {}",
                            seat_.name, type, bytes, named ? named.describe() : "none"));
        if (!parameters_.empty()) return parameters_.first(bytes);
        if (initial_.empty()) initial_ = named.initial_values();
        return initial_;
    }
    [[nodiscard]] frame_metadata metadata() noexcept override {
        if (made_.slots.empty()) return frame_metadata(std::span(made_.metadata).first(made_.metadata_bytes));
        return {made_.metadata, made_.metadata_bytes};
    }
    [[nodiscard]] frame_metadata input_metadata(std::size_t i) noexcept override {
        const seat::made_frame& from = chain_.find_ring(seat_.inputs[i]).made();
        return frame_metadata(std::span(from.metadata).first(from.metadata_bytes));
    }
    void set_capture_ns(u64 ns) override {
        if (!seat_.inputs.empty() || made_.slots.empty()) frame::set_capture_ns(ns);
        made_.set_capture_ns(ns);
    }
    void stamp(const frame_stamp& with) override {
        if (!seat_.inputs.empty() || made_.slots.empty()) frame::stamp(with);
        made_.time_s = with.time_s;
        if (with.capture_ns == 0) return;
        made_.clock = with.captured_here ? shm::capture_clock::live : shm::capture_clock::recorded;
        made_.capture_ns = with.capture_ns;
    }
    /// Merges the metadata of the frame's inputs in the same way as ring::worker.
    void take_carried() {
        made_.metadata_bytes = 0;
        made_.set_capture_ns(0);
        made_.sampled_from.clear();
        for (const ring::frame_facts& sampled : sampled_frames_)
            made_.sampled_from.push_back(sampled.ring_sequence);
        for (shm::used_extents& used : made_.used) used.planes = 0;
        for (const std::string& input : seat_.inputs) {
            const seat::made_frame& from = chain_.find_ring(input).made();
            if (made_.capture_ns == 0) made_.set_capture_ns(from.capture_ns);
            (void)ring::merge_metadata(made_.metadata, made_.metadata_bytes,
                                       std::span(from.metadata).first(from.metadata_bytes));
        }
    }
    [[nodiscard]] device::queue& queue() noexcept override { return *chain_.world_->work; }
    [[nodiscard]] input_payload input(std::size_t i) const noexcept override {
        return chain_.find_ring(seat_.inputs[i]).payload();
    }
    using frame::sampled;
    [[nodiscard]] sampled_frame sampled(std::size_t i) const override {
        if (i >= sampled_frames_.size())
            throw config_error(fmt::format("stage {} requests sampled input {}; it was added with {}",
                                           seat_.name, i, sampled_frames_.size()));
        if (sampled_frames_[i].frame_number == shm::no_sampled_frame) return {};
        return {chain_.find_ring(seat_.sampled[i]).payload(), sampled_frames_[i]};
    }
    [[nodiscard]] std::size_t sampled_index(std::string_view name) const override {
        const auto at = std::find(seat_.sampled.begin(), seat_.sampled.end(), name);
        if (at == seat_.sampled.end())
            throw config_error(fmt::format(
                "stage {} requests the sampled input \"{}\"; it was added with {}", seat_.name, name,
                seat_.sampled.empty() ? "none" : fmt::format("{}", fmt::join(seat_.sampled, ", "))));
        return static_cast<std::size_t>(at - seat_.sampled.begin());
    }
    [[nodiscard]] std::span<const u64> input_sampled(std::size_t i) const noexcept override {
        return chain_.find_ring(seat_.inputs[i]).made().sampled_from;
    }
    [[nodiscard]] output_payload output(std::size_t k) const noexcept override {
        return made_output{&seat_, k, chain_.place_}.payload();
    }
    [[nodiscard]] std::size_t output_index(std::string_view name) const override {
        return carousel::output_index(seat_.description.outputs, name);
    }
    // Called in process() alone: see process().
    [[nodiscard]] frame_state state() const override {
        if (!in_process_ || seat_.states.empty()) return frame::state();
        const seat::kept_state& before = seat_.states[previous_state_];
        return {{before.memory->data(), &seat_.state_format},
                {seat_.states[seat_.newest_state].memory->data(), &seat_.state_format},
                !before.frame_number,
                false};
    }
    void process() {
        if (!seat_.states.empty()) begin_state();
        in_process_ = true;
        detail::call_process(*seat_.object, *this);
        in_process_ = false;
    }
    [[nodiscard]] u32 lane() const noexcept override {
        return static_cast<u32>(made_.frame_number % chain_.options_.in_flight);
    }
    [[nodiscard]] std::string_view tombstone_reason() const noexcept override { return reason_; }
    [[nodiscard]] bool is_owned() const noexcept override { return chain_.owned; }
    using frame::set_hash;
    void set_hash(u64 hash, std::string_view name) noexcept override { hash_ = hash, hash_name_ = name; }
    void end_stream() override {
        if (!seat_.inputs.empty() || !seat_.description.ends)
            throw std::logic_error(fmt::format(
                "stage {} calls end_stream(), but it is not a source that declares it (description::ends)",
                seat_.name));
        chain_.ended_ = true;
    }

    void finish() {
        if (reason_.empty() || seat_.description.wants_tombstones) seat_.object->finish(*this);
        if (hash_) seat_.hashes[made_.frame_number] = *hash_;
        if (!seat_.ledger) return;
        const auto hash =
            hash_ ? telemetry::frame_hash(*hash_, hash_name_) : telemetry::frame_hash(std::nullopt);
        seat_.ledger->record(made_.frame_number, hash, !reason_.empty(), chain_.options_.epoch);
        seat_.ledger->mark_committed(made_.frame_number, hash, !reason_.empty(), chain_.options_.epoch);
    }

private:
    // A frame that is run again continues from the state from which it was made before.
    void begin_state() {
        const std::size_t all = seat_.states.size();
        if (seat_.states[seat_.newest_state].frame_number == made_.frame_number) {
            previous_state_ = (seat_.newest_state + all - 1) % all;
            return;
        }
        previous_state_ = seat_.newest_state;
        seat_.newest_state = (seat_.newest_state + 1) % all;
        seat_.states[seat_.newest_state].frame_number = made_.frame_number;
    }

    chain& chain_;
    seat& seat_;
    seat::made_frame& made_;
    std::size_t previous_state_ = 0;
    bool in_process_ = false;
    std::span<const std::byte> parameters_;
    mutable std::vector<std::byte> initial_;
    std::vector<ring::frame_facts> sampled_frames_;
    std::string reason_;
    std::optional<u64> hash_;
    std::string hash_name_;
};

chain::chain(chain_options options)
    : options_(std::move(options)), world_(std::make_unique<world>(options_)) {}
chain::~chain() { world_->work->drain(); }

chain::seat& chain::find(const std::string& name) {
    const auto at =
        std::find_if(seats_.begin(), seats_.end(), [&](const auto& s) { return s->name == name; });
    if (at == seats_.end()) throw config_error(fmt::format("no stage \"{}\" was added to this chain", name));
    return **at;
}

chain::made_output chain::find_ring(const std::string& name) {
    const std::size_t dot = name.find('.');
    seat& s = find(name.substr(0, dot));
    if (dot != std::string::npos && !s.description.state.empty() && name.substr(dot + 1) == state_output)
        return {&s, 0, place_, true};
    if (s.description.outputs.empty()) throw config_error(fmt::format("stage \"{}\" has no output", s.name));
    return {&s,
            dot == std::string::npos
                ? 0
                : carousel::output_index(s.description.outputs, std::string_view(name).substr(dot + 1)),
            place_};
}

void chain::require(bool prepared, const char* call) const {
    if (prepared == prepared_) return;
    throw config_error(fmt::format(
        "carousel::testing::chain: {} was called {} prepare(); call prepare() once, after the last add() "
        "and give() and before any function that moves frames",
        call, prepared ? "before" : "after"));
}

/// Allocates memory for that many frames in flight.
void chain::make_room(std::size_t frames) {
    for (auto& s : seats_) {
        while (s->frames.size() < frames) {
            seat::made_frame& made = s->frames.emplace_back();
            for (output_description& o : s->description.outputs)
                made.slots.push_back(world_->device->allocate(o.lay_out()));
        }
    }
}

// One state more than frames in flight: the one before the first of them.
void chain::make_states(seat& s) {
    if (s.description.state.empty()) return;
    const u64 bytes = s.state_format.lay_out();
    while (s.states.size() < options_.in_flight + 1)
        s.states.push_back({world_->device->allocate(bytes), std::nullopt});
}

description& chain::add(const std::string& name, std::unique_ptr<stage> object,
                        const std::string& settings_json, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& sampled) {
    require(false, "add()");
    auto s = std::make_unique<seat>();
    s->name = name;
    s->object = std::move(object);
    s->settings = settings::from_json(settings_json);
    s->inputs = inputs;
    s->sampled = sampled;
    configure(*s);
    seats_.push_back(std::move(s));
    return seats_.back()->description;
}

void chain::configure(seat& s) {
    const bool cuda = options_.device.kind == device_kind::cuda;
    configuration with{.stage = s.name,
                       .width = options_.width,
                       .height = options_.height,
                       .settings = &s.settings,
                       .inputs = {},
                       .fps = options_.fps,
                       .device = cuda ? fmt::format("cuda:{}", options_.device.ordinal) : "cpu",
                       .folder = options_.folder};
    for (const std::string& input : s.inputs) {
        const description& from = find(input.substr(0, input.find('.'))).description;
        if (from.outputs.empty() && from.state.empty())
            throw config_error(fmt::format("stage {} reads \"{}\", which has no output", s.name, input));
        with.inputs.push_back({input, find_ring(input).format()});
    }
    for (const std::string& one : s.sampled) with.sampled.push_back({one, find_ring(one).format()});
    s.description = s.object->configure(with);
    if (!s.sampled.empty() && !s.description.accepts_sampled_inputs)
        throw config_error(
            fmt::format("stage {} is added with sampled inputs but accepts none: set accepts_sampled_inputs "
                        "= true in configure() if frame::sampled() is used",
                        s.name));
    s.settings.refuse_unread();
    check_reads(s.description, with);
    if (s.description.parameters) s.description.parameters.check();
    check_outputs(s.description);
    for (output_description& o : s.description.outputs) (void)o.lay_out();
    if (!s.description.state.empty()) s.state_format = all_outputs(s.description).back();
}

void chain::kill_and_restart(const std::string& name, std::unique_ptr<stage> fresh) {
    require(true, "kill_and_restart()");
    seat& s = find(name);
    if (!s.object)
        throw config_error(fmt::format("\"{}\" is a stand-in, which has no process to kill", name));
    world_->work->drain();
    const std::vector<output_description> before = all_outputs(s.description);
    s.object = std::move(fresh);
    configure(s);
    if (all_outputs(s.description) != before)
        throw config_error(
            fmt::format("the new object of stage {} writes other outputs, or another state, "
                        "than the one that it replaces",
                        name));
    s.object->prepare(*world_);
}

void chain::provide(const std::string& name, std::vector<output_description> outputs) {
    require(false, "give()");
    auto s = std::make_unique<seat>();
    s->name = name;
    s->description.outputs = std::move(outputs);
    check_outputs(s->description);
    for (output_description& o : s->description.outputs) (void)o.lay_out();
    seats_.push_back(std::move(s));
}

chain::seat& chain::find_provider(const std::string& name, const char* reason) {
    seat& s = find(name.substr(0, name.find('.')));
    if (s.object)
        throw config_error(
            fmt::format("\"{}\" is a stage, which {}; only a stand-in made by give() can be set from outside",
                        s.name, reason));
    return s;
}

void chain::newest(const std::string& name, u64 frame_number) {
    find_provider(name, "has its own frames").newest = frame_number;
}

void chain::prepare() {
    require(false, "prepare()");
    make_room(1);
    for (auto& s : seats_) {
        for (const asset_description& made : s->description.makes) {
            auto memory = world_->device->allocate(made.bytes);
            s->object->load_asset(made.name, {memory->data(), made.bytes}, *world_);
            world_->assets[made.name] = std::move(memory);
        }
    }
    for (auto& s : seats_) {
        if (!s->object) continue;
        make_states(*s);
        s->object->prepare(*world_);
        if (s->description.outputs.empty())
            s->ledger = std::make_unique<telemetry::ledger_writer>(
                telemetry::ledger_path(options_.runtime_directory, s->name));
    }
    prepared_ = true;
}

void chain::run_with(u64 frame_number, std::span<const std::byte> parameters) {
    require(true, "run()");
    ended_ = false;
    for (auto& s : seats_) {
        if (!s->object) continue;
        chain_frame f(*this, *s, frame_number, parameters, "");
        f.take_carried();
        f.process();
        if (ended_) break;  // the frame doesn't exist, so no stage downstream gets it
        s->newest = frame_number;
        if (s->object->commits_on_host()) {
            world_->work->drain();
            f.finish();
        }
    }
    world_->work->drain();
}

// Runs stage by stage, so that a stage's inputs are complete: process() of all frames, then finish() of each.
void chain::run_in_flight(u64 first, u32 frames, const std::function<void(u64)>& fill) {
    require(true, "run_in_flight()");
    if (frames < 1 || frames > options_.in_flight)
        throw config_error(
            fmt::format("carousel::testing::chain: run_in_flight() was called with {} frames; expected 1 to "
                        "{} (the option in_flight)",
                        frames, options_.in_flight));
    make_room(frames);
    const auto for_each_frame = [&](const auto& call) {
        for (place_ = 0; place_ < frames; ++place_) call(place_);
        place_ = 0;
    };
    if (fill) for_each_frame([&](std::size_t k) { fill(first + k); });
    ended_ = false;
    for (auto& s : seats_) {
        if (!s->object) continue;
        std::vector<std::unique_ptr<chain_frame>> all;
        for_each_frame([&](std::size_t k) {
            all.push_back(
                std::make_unique<chain_frame>(*this, *s, first + k, std::span<const std::byte>(), ""));
            all.back()->take_carried();
            all.back()->process();
            s->newest = first + k;
        });
        world_->work->drain();
        if (s->object->commits_on_host()) for_each_frame([&](std::size_t k) { all[k]->finish(); });
    }
}

std::optional<u64> chain::hash(const std::string& name, u64 frame_number) {
    const std::map<u64, u64>& all = find(name).hashes;
    const auto at = all.find(frame_number);
    return at == all.end() ? std::nullopt : std::optional(at->second);
}

void chain::run_tombstone(u64 frame_number, const std::string& reason) {
    require(true, "run_tombstone()");
    for (auto& s : seats_) {
        if (!s->object || !s->object->commits_on_host()) continue;
        chain_frame f(*this, *s, frame_number, {}, reason);
        f.finish();
    }
}

std::vector<std::byte> chain::fetch(const std::byte* from, u64 bytes) {
    const auto host = world_->device->allocate_host(bytes);
    world_->work->copy(host->data(), from, bytes);
    world_->work->drain();
    return {host->host_data(), host->host_data() + bytes};
}

std::vector<std::byte> chain::read_bytes(const std::string& name, std::size_t index) {
    require(true, "read_bytes()");
    const made_output r = find_ring(name);
    const plane& p = r.format().planes.at(index);
    return fetch(r.data() + p.offset, p.bytes());
}

std::vector<std::byte> chain::read_plane(const std::string& name, std::string_view plane, element type) {
    require(true, "read()");
    const made_output r = find_ring(name);
    const ring::plane& p = detail::find_plane(r.format(), plane, &type);
    const auto index = static_cast<std::size_t>(&p - r.format().planes.data());
    return fetch(r.data() + p.offset, ring::used_plane(r.format(), index, r.used()).bytes());
}

void chain::write_plane(const std::string& name, std::string_view plane, element type,
                        std::span<const std::byte> bytes) {
    require(true, "fill()");
    (void)find_provider(name, "writes its planes itself");
    const made_output r = find_ring(name);
    const ring::plane& p = detail::find_plane(r.format(), plane, &type);
    if (bytes.size() != p.bytes())
        throw config_error(fmt::format("the plane \"{}\" of \"{}\" has {} bytes, but is given {}: {}", plane,
                                       name, p.bytes(), bytes.size(), r.format().describe()));
    const auto host = world_->device->allocate_host(bytes.size());
    std::copy(bytes.begin(), bytes.end(), host->host_data());
    world_->work->copy(r.data() + p.offset, host->data(), bytes.size());
    world_->work->drain();
}

frame_metadata chain::metadata(const std::string& name) {
    require(true, "metadata()");
    seat::made_frame& made = find(name).frames.at(place_);
    return {made.metadata, made.metadata_bytes};
}

u64 chain::capture_ns(const std::string& name) {
    require(true, "capture_ns()");
    return find(name).frames.at(place_).capture_ns;
}

void chain::set_used(const std::string& name, std::string_view plane, std::initializer_list<u64> elements) {
    require(true, "set_used()");
    (void)find_provider(name, "declares its used extents itself");
    const made_output r = find_ring(name);
    ring::set_used(r.used(), r.format(), plane, {elements.begin(), elements.size()});
}

std::vector<std::byte> chain::read_asset(const std::string& name) {
    require(true, "read_asset()");
    const auto memory = world_->asset(name);
    return fetch(memory.data(), memory.size());
}

}  // namespace carousel::testing
