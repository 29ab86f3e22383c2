#include "tests/stages/harness.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/errors.hpp"
#include "telemetry/ledger.hpp"

namespace carousel::test {

/// What prepare() sees; also owns the device.
struct chain::world : stages::environment {
    explicit world(const chain_options& o)
        : options(o), device(device::open(o.device, o.cpu_threads)), work(device->make_queue()) {}

    device::context& context() override { return *device; }
    device::queue& queue() override { return *work; }
    std::span<std::byte> asset(std::string_view name) override {
        const auto at = assets.find(name);
        if (at == assets.end()) {
            throw shm_error("no stage makes the asset " + std::string(name));
        }
        return {at->second->data(), at->second->bytes()};
    }
    [[nodiscard]] std::string run_directory() const override { return options.run_directory; }
    [[nodiscard]] u32 instance() const override { return 0; }
    [[nodiscard]] u32 epoch() const override { return options.epoch; }
    [[nodiscard]] u32 in_flight() const override { return options.in_flight; }

    chain_options options;
    std::unique_ptr<device::context> device;
    std::unique_ptr<device::queue> work;
    std::map<std::string, std::unique_ptr<device::mapping>, std::less<>> assets;
};

struct chain::seat {
    std::string name;
    std::unique_ptr<stages::stage> object;
    stages::settings settings;
    stages::description description;
    std::vector<std::string> inputs;
    std::unique_ptr<device::mapping> slot;
    std::unique_ptr<telemetry::ledger_writer> ledger;  // of a sink, as the runner keeps it
};

class chain::frame_in_hand : public stages::frame {
public:
    frame_in_hand(chain& c, seat& s, u64 sequence, const kernels::scene_state& scene, std::string reason)
        : chain_(c), seat_(s), sequence_(sequence), scene_(scene), reason_(std::move(reason)) {}
    [[nodiscard]] u64 sequence() const noexcept override { return sequence_; }
    [[nodiscard]] f64 time_s() const noexcept override { return static_cast<f64>(sequence_) / 60.0; }
    [[nodiscard]] std::span<const std::byte> parameter_values() const noexcept override {
        return std::as_bytes(std::span(&scene_, 1));
    }
    [[nodiscard]] u64 parameter_number() const noexcept override { return 0; }
    [[nodiscard]] device::queue& queue() noexcept override { return *chain_.world_->work; }
    [[nodiscard]] stages::payload_ref input(std::size_t i) const noexcept override { return slot_of(chain_.find(seat_.inputs[i])); }
    [[nodiscard]] stages::payload_ref output() const noexcept override { return slot_of(seat_); }
    [[nodiscard]] u32 lane() const noexcept override { return static_cast<u32>(sequence_ % chain_.options_.in_flight); }
    [[nodiscard]] std::string_view void_reason() const noexcept override { return reason_; }
    [[nodiscard]] bool is_ours() const noexcept override { return chain_.ours; }
    void set_hash(u64 hash) noexcept override { hash_ = hash; }

    void finish() {
        seat_.object->finish(*this);
        if (!seat_.ledger) return;
        seat_.ledger->record(sequence_, hash_, !reason_.empty(), chain_.options_.epoch);
        seat_.ledger->mark_committed(sequence_, hash_, !reason_.empty(), chain_.options_.epoch);
    }

private:
    static stages::payload_ref slot_of(seat& s) {
        return s.slot ? stages::payload_ref(s.slot->data(), &s.description.output) : stages::payload_ref();
    }
    chain& chain_;
    seat& seat_;
    u64 sequence_;
    kernels::scene_state scene_;
    std::string reason_;
    std::optional<u64> hash_;
};

chain::chain(chain_options options) : options_(std::move(options)), world_(std::make_unique<world>(options_)) {}
chain::~chain() { world_->work->drain(); }

chain::seat& chain::find(const std::string& name) {
    const auto at = std::find_if(seats_.begin(), seats_.end(), [&](const auto& s) { return s->name == name; });
    CAROUSEL_ASSERT(at != seats_.end());
    return **at;
}

stages::description& chain::add(const std::string& name, std::unique_ptr<stages::stage> stage, const std::string& settings_json,
                                const std::vector<std::string>& inputs) {
    auto s = std::make_unique<seat>();
    s->name = name;
    s->object = std::move(stage);
    s->settings = stages::settings::from_json(settings_json);
    s->inputs = inputs;
    stages::configuration with{name, options_.width, options_.height, &s->settings, {}};
    for (const auto& input : inputs) {
        with.inputs.push_back({input, find(input).description.output});
    }
    s->description = s->object->configure(with);
    s->settings.refuse_unread();
    if (!s->description.output.type.empty()) {
        (void)s->description.output.lay_out();
    }
    seats_.push_back(std::move(s));
    return seats_.back()->description;
}

void chain::prepare() {
    for (auto& s : seats_) {
        if (!s->description.output.type.empty()) {
            s->slot = world_->device->allocate(s->description.output.lay_out());
        }
        for (const auto& made : s->description.makes) {
            auto memory = world_->device->allocate(made.bytes);
            s->object->load_asset(made.name, {memory->data(), made.bytes}, *world_);
            world_->assets[made.name] = std::move(memory);
        }
    }
    for (auto& s : seats_) {
        s->object->prepare(*world_);
        if (s->description.output.type.empty()) {
            s->ledger = std::make_unique<telemetry::ledger_writer>(telemetry::ledger_path(options_.run_directory, s->name));
        }
    }
}

void chain::run(u64 sequence, const kernels::scene_state& scene) {
    for (auto& s : seats_) {
        frame_in_hand f(*this, *s, sequence, scene, "");
        s->object->process(f);
        if (s->object->commits_on_host()) {
            world_->work->drain();
            f.finish();
        }
    }
    world_->work->drain();
}

void chain::run_void(u64 sequence, const std::string& reason) {
    for (auto& s : seats_) {
        if (s->object->commits_on_host()) {
            frame_in_hand f(*this, *s, sequence, {}, reason);
            f.finish();
        }
    }
}

std::vector<std::byte> chain::fetch(const std::byte* from, u64 bytes) {
    const auto host = world_->device->allocate_host(bytes);
    world_->work->copy(host->data(), from, bytes);
    world_->work->drain();
    return {host->host_data(), host->host_data() + bytes};
}

std::vector<std::byte> chain::read(const std::string& name, std::size_t plane) {
    seat& s = find(name);
    const auto& p = s.description.output.planes.at(plane);
    return fetch(s.slot->data() + p.offset, p.bytes());
}

std::vector<std::byte> chain::read_asset(const std::string& name) {
    const auto memory = world_->asset(name);
    return fetch(memory.data(), memory.size());
}

}  // namespace carousel::test
