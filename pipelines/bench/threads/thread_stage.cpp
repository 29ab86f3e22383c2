#include "bench/threads/thread_stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "spec/describe.hpp"
#include "stages/display/display.hpp"
#include "stages/fragment/fragment.hpp"
#include "stages/fused/fused.hpp"
#include "stages/geometry/geometry.hpp"
#include "stages/sharpen/sharpen.hpp"
#include "stages/vertex/vertex.hpp"

namespace carousel::bench {
namespace {

struct shipped_stage {
    const char* program;
    std::unique_ptr<stage> (*make)();
};
template <typename Stage>
std::unique_ptr<stage> made() {
    return std::make_unique<Stage>();
}
constexpr shipped_stage all[] = {
    {"carousel-geometry", made<stages::geometry>}, {"carousel-vertex", made<stages::vertex>},
    {"carousel-fragment", made<stages::fragment>}, {"carousel-fused", made<stages::fused>},
    {"carousel-sharpen", made<stages::sharpen>},   {"carousel-display", made<stages::display>},
};

}  // namespace

std::unique_ptr<stage> make_shipped_stage(const std::string& stage_name, const std::string& run) {
    const std::string program = std::filesystem::path(run).filename();
    std::string known;
    for (const shipped_stage& s : all) {
        if (program == s.program) return s.make();
        known += (known.empty() ? "" : ", ") + std::string(s.program);
    }
    throw config_error(fmt::format(
        "--modes none: stage \"{}\" runs {}; only stages that Carousel ships can run in one process: {}",
        stage_name, program, known));
}

class thread_stage::surroundings final : public environment {
public:
    surroundings(thread_world& world, device::queue& queue, u32 instance, u32 in_flight)
        : world_(world), queue_(queue), instance_(instance), in_flight_(in_flight) {}
    device::context& context() override { return *world_.device; }
    device::queue& queue() override { return queue_; }
    std::span<const std::byte> asset(std::string_view name) override {
        const auto at = world_.assets.find(name);
        if (at == world_.assets.end())
            throw config_error(fmt::format("no stage produces the asset {}", name));
        return {at->second->data(), at->second->bytes()};
    }
    [[nodiscard]] std::string runtime_directory() const override { return world_.runtime_directory; }
    [[nodiscard]] std::string output_directory() const override { return world_.runtime_directory; }
    [[nodiscard]] u32 instance() const override { return instance_; }
    [[nodiscard]] u32 epoch() const override { return 1; }
    [[nodiscard]] u32 in_flight() const override { return in_flight_; }

private:
    thread_world& world_;
    device::queue& queue_;
    u32 instance_, in_flight_;
};

class thread_stage::current_frame final : public frame {
public:
    current_frame(thread_stage& of, u32 instance, u64 n) : of_(of), instance_(instance), n_(n) {
        meta_.frame_number = n;
        meta_.time_s = static_cast<f64>(n) / of_.world_.fps;
    }
    [[nodiscard]] const shm::frame_meta& meta() const noexcept override { return meta_; }
    [[nodiscard]] std::span<const std::byte> parameter_values(std::string_view type,
                                                              std::size_t bytes) const override {
        const parameter_schema& named = of_.description_.parameters;
        if (named.type != type || bytes != of_.world_.parameters.size())
            throw config_error(fmt::format(
                "stage {} reads parameters of type {}, but its configure() does not name that type",
                of_.spec_.name, type));
        return of_.world_.parameters;
    }
    [[nodiscard]] device::queue& queue() noexcept override { return *of_.queues_[instance_]; }
    [[nodiscard]] input_payload input(std::size_t i) const noexcept override {
        const thread_stage& from = *of_.inputs_[i];
        return input_payload(from.slots_[n_ % from.slots_.size()]->data(), from.output());
    }
    [[nodiscard]] output_payload output(std::size_t) const noexcept override {
        if (of_.slots_.empty()) return {};
        return output_payload(of_.slots_[n_ % of_.slots_.size()]->data(), of_.output());
    }
    [[nodiscard]] u32 lane() const noexcept override {
        return static_cast<u32>(n_ / of_.spec_.instances % of_.in_flight_);
    }
    [[nodiscard]] std::string_view tombstone_reason() const noexcept override { return {}; }
    using frame::set_hash;
    void set_hash(u64 hash, std::string_view) noexcept override { hash_ = hash; }
    [[nodiscard]] u64 hash() const noexcept { return hash_; }

private:
    thread_stage& of_;
    u32 instance_;
    u64 n_, hash_ = 0;
    shm::frame_meta meta_;
};

thread_stage::thread_stage(thread_world& world, const supervisor::pipeline& p,
                           const supervisor::stage_spec& spec, std::vector<thread_stage*> inputs)
    : world_(world),
      spec_(spec),
      in_flight_(spec.in_flight.value_or(lanes_by_itself)),
      inputs_(std::move(inputs)) {
    settings_ = settings::from_json(spec.settings.dump());
    configuration with{.stage = spec.name,
                       .width = p.width,
                       .height = p.height,
                       .settings = &settings_,
                       .inputs = {},
                       .fps = p.fps,
                       .device = spec.device,
                       .folder = supervisor::folder_of(p)};
    for (const thread_stage* i : inputs_) with.inputs.push_back({i->spec_.name, *i->output()});
    for (u32 k = 0; k < spec.instances; ++k) {
        objects_.push_back(make_shipped_stage(spec.name, spec.run));
        description_ = objects_.back()->configure(with);
    }
    if (frame_format* format = output_of(description_); format != nullptr) (void)format->lay_out();
    for (thread_stage* i : inputs_) i->readers_.push_back(this);
}

thread_stage::~thread_stage() { finish_work(); }

void thread_stage::finish_work() noexcept {
    for (const auto& q : queues_) {
        try {
            q->drain();
        } catch (const std::exception&) {  // already stored: failure()
        }
    }
}

std::vector<std::unique_ptr<thread_stage>> make_stages(thread_world& world, const supervisor::pipeline& p) {
    std::vector<std::unique_ptr<thread_stage>> stages;
    for (const supervisor::stage_spec& spec : p.stages) {
        std::vector<thread_stage*> inputs;
        for (const u32 i : spec.input_indices) inputs.push_back(stages[i].get());
        stages.push_back(std::make_unique<thread_stage>(world, p, spec, std::move(inputs)));
    }
    return stages;
}

void thread_stage::allocate(u64 slots, std::shared_ptr<device::queue> one_queue) {
    for (u32 k = 0; k < spec_.instances; ++k) {
        queues_.push_back(one_queue ? one_queue : world_.device->make_queue());
        surroundings_.push_back(std::make_unique<surroundings>(world_, *queues_.back(), k, in_flight_));
    }
    if (frame_format* format = output_of(description_); format != nullptr && !readers_.empty()) {
        const u64 bytes = format->lay_out();
        for (u64 k = 0; k < slots; ++k) slots_.push_back(world_.device->allocate(bytes));
    }
    for (const asset_description& made : description_.makes) {
        auto memory = world_.device->allocate(made.bytes);
        objects_.front()->load_asset(made.name, {memory->data(), made.bytes}, *surroundings_.front());
        queues_.front()->drain();
        world_.assets[made.name] = std::move(memory);
    }
}

void thread_stage::prepare() {
    for (u32 k = 0; k < spec_.instances; ++k) objects_[k]->prepare(*surroundings_[k]);
    for (const auto& q : queues_) q->drain();
}

void thread_stage::work_alone(u64 n) {
    current_frame f(*this, 0, n);
    objects_.front()->process(f);
}

void thread_stage::finish_alone(u64 n) {
    if (!commits_on_host()) return;
    current_frame f(*this, 0, n);
    objects_.front()->finish(f);
}

void thread_stage::start(u64 most_slots) {
    cells_ = std::vector<cell>(most_slots + under_way() + 1);
    for (cell& c : cells_) c.mark = make_mark(*world_.device, world_.stop);
    for (u32 k = 0; k < spec_.instances; ++k) threads_.emplace_back([this, k] { enqueue_frames(k); });
    threads_.emplace_back([this] { finish_frames(); });
}

void thread_stage::join() {
    for (std::thread& t : threads_) t.join();
    threads_.clear();
}

void thread_stage::store_failure() {
    {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
    }
    world_.failed();
}

bool thread_stage::wait_for(std::atomic<u64> cell::*what, u64 n) {
    const std::atomic<u64>& at = cell_of(n).*what;
    std::unique_lock lock(mutex_);
    // `stop` ends the waits of all threads; polling `stop` every 20 ms is sufficient.
    while (at.load() != n + 1 && !world_.stop) moved_.wait_for(lock, std::chrono::milliseconds(20));
    return at.load() == n + 1;
}
// Host work of a stage must be finished before downstream stages use its results. For device work it suffices
// that the work is enqueued, because the device executes work in order.
bool thread_stage::wait_enqueued(u64 n) {
    return wait_for(objects_.front()->commits_on_host() && !is_sink() ? &cell::finished : &cell::enqueued, n);
}
bool thread_stage::wait_finished(u64 n) { return wait_for(&cell::finished, n); }

void thread_stage::publish(std::atomic<u64> cell::*what, u64 n) {
    {
        const std::lock_guard lock(mutex_);
        (cell_of(n).*what).store(n + 1);
    }
    moved_.notify_all();
}

void thread_stage::enqueue_frames(u32 instance) {
    try {
        for (u64 n = instance; !world_.stop && n < world_.end; n += spec_.instances) enqueue_one(instance, n);
    } catch (...) {
        store_failure();
    }
}

void thread_stage::wait_for_its_time(u64 n) const {
    const u64 due = world_.began_ns + static_cast<u64>(static_cast<f64>(n) * 1e9 / world_.pace);
    for (u64 now = now_ns(); !world_.stop && now < due; now = now_ns())
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(due - now, 20 * ns_per_ms)));
}

void thread_stage::enqueue_one(u32 instance, u64 n) {
    device::queue& queue = *queues_[instance];
    if (n >= under_way() && !wait_finished(n - under_way())) return;  // the frame's lane must be free
    for (thread_stage* reader : readers_)
        if (n >= slots_.size()) {
            if (!reader->wait_enqueued(n - slots_.size())) return;
            reader->cell_of(n - slots_.size()).mark->hold(queue);
        }
    for (thread_stage* input : inputs_) {
        if (!input->wait_enqueued(n)) return;
        input->cell_of(n).mark->hold(queue);
    }
    if (is_source() && world_.pace > 0) wait_for_its_time(n);
    cell_of(n).begun_ns = now_ns();
    current_frame f(*this, instance, n);
    objects_[instance]->process(f);
    cell_of(n).mark->record(queue);
    publish(&cell::enqueued, n);
}

void thread_stage::finish_frames() {
    try {
        for (u64 n = 0; !world_.stop && n < world_.end; ++n) {
            if (!wait_for(&cell::enqueued, n)) return;
            cell_of(n).mark->wait();
            if (!world_.stop) finish_one(n);
        }
    } catch (...) {
        store_failure();
    }
}

void thread_stage::finish_one(u64 n) {
    const u32 instance = static_cast<u32>(n % spec_.instances);
    current_frame f(*this, instance, n);
    if (objects_[instance]->commits_on_host()) objects_[instance]->finish(f);
    if (is_sink()) {
        const std::lock_guard lock(results_);
        latency_ms_.push_back(static_cast<f64>(now_ns() - oldest_beginning(n)) / 1e6);
        hash_.push_back(f.hash());
    }
    publish(&cell::finished, n);
    ++delivered_;
}

u64 thread_stage::oldest_beginning(u64 n) const {
    u64 oldest = begun_ns(n);
    for (const thread_stage* i : inputs_) oldest = std::min(oldest, i->oldest_beginning(n));
    return oldest;
}

std::vector<f64> thread_stage::latencies_ms(u64 first) const {
    const std::lock_guard lock(results_);
    const u64 from = std::min<u64>(first, latency_ms_.size());
    return {latency_ms_.begin() + static_cast<std::ptrdiff_t>(from), latency_ms_.end()};
}

std::vector<u64> thread_stage::hashes() const {
    const std::lock_guard lock(results_);
    return hash_;
}

}  // namespace carousel::bench
