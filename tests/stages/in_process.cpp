#include "tests/stages/in_process.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <thread>

#include "device/canary.hpp"
#include "device/cpu/context.hpp"
#include "device/cpu/memfd.hpp"
#include "ring/recovery.hpp"
#include "stages/runner/exit_note.hpp"

namespace carousel::test {
namespace {

constexpr u64 table_bytes = 4096;  ///< of the source's asset

class shared_view final : public device::mapping {
public:
    shared_view(std::byte* at, u64 bytes) {
        data_ = host_ = at;
        bytes_ = bytes;
    }
};

/// The bytes of a pointer within this process, as they travel in a handle.
using address_bytes = std::array<std::byte, sizeof(void*)>;

/// The CPU's queue; counts the requests to it.
class counting_queue final : public device::queue {
public:
    counting_queue(std::unique_ptr<device::queue> inner, queue_counts* counts)
        : inner_(std::move(inner)), counts_(counts) {}
    [[nodiscard]] device::queue& inner() noexcept { return *inner_; }
    [[nodiscard]] device::device_kind kind() const noexcept override { return inner_->kind(); }
    void copy(void* to, const void* from, u64 bytes) override {
        if (counts_ != nullptr) counts_->copies.fetch_add(1);
        if (counts_ != nullptr && counts_->at_copy) counts_->at_copy();
        inner_->copy(to, from, bytes);
    }
    void fill(void* to, u8 value, u64 bytes) override { inner_->fill(to, value, bytes); }
    void status(const device::status_step& step) override {
        if (counts_ != nullptr) counts_->status_steps.fetch_add(1);
        inner_->status(step);
    }
    void drain() override { inner_->drain(); }
    void fault() override { inner_->fault(); }
    void submit(std::function<void(device::cpu::pool&)> task) override { inner_->submit(std::move(task)); }
    [[nodiscard]] void* native_stream() const noexcept override { return inner_->native_stream(); }

private:
    std::unique_ptr<device::queue> inner_;
    queue_counts* counts_;
};

device::queue& inner_of(device::queue& q) { return static_cast<counting_queue&>(q).inner(); }

/// The CPU's event, for such a queue.
class plain_event final : public device::event {
public:
    explicit plain_event(std::unique_ptr<device::event> inner) : inner_(std::move(inner)) {}
    void record(device::queue& on, u64 tag) override { inner_->record(inner_of(on), tag); }
    bool done() override { return inner_->done(); }
    void wait() override { inner_->wait(); }
    [[nodiscard]] handle export_handle() const override { return inner_->export_handle(); }

private:
    std::unique_ptr<device::event> inner_;
};

class cuda_like_event final : public device::event {
public:
    cuda_like_event(std::atomic<u64>* shared, event_state& state)
        : inner_(std::make_unique<device::cpu::event>(shared)), state_(&state) {}
    void record(device::queue& on, u64 tag) override {
        event_state* s = state_;
        const u64 number = s->recorded.fetch_add(1) + 1;
        on.submit([s, number](device::cpu::pool&) { s->completed.store(number); });
        inner_->record(inner_of(on), tag);
    }
    bool done() override { return inner_->done(); }
    void wait() override { inner_->wait(); }
    [[nodiscard]] handle export_handle() const override {
        handle h{};
        const auto bytes = std::bit_cast<address_bytes>(state_);
        std::memcpy(h.data(), bytes.data(), bytes.size());
        return h;
    }

private:
    std::unique_ptr<device::event> inner_;
    event_state* state_;
};

class cuda_like_import final : public device::imported_event {
public:
    explicit cuda_like_import(const event_state* s) : state_(s) {}
    bool done(u64) noexcept override { return state_->completed.load() == state_->recorded.load(); }

private:
    const event_state* state_;
};

class shared_context final : public device::context {
public:
    shared_context(shared_memory& memory, bool as_cuda, queue_counts* counts, bool own)
        : memory_(&memory), as_cuda_(as_cuda), own_(own), counts_(counts), cpu_(1) {}
    [[nodiscard]] device::device_kind kind() const noexcept override { return device::device_kind::cpu; }
    [[nodiscard]] std::string description() const override { return "threads of one process"; }
    [[nodiscard]] std::unique_ptr<device::queue> make_queue() override {
        return std::make_unique<counting_queue>(cpu_.make_queue(), counts_);
    }
    [[nodiscard]] std::unique_ptr<device::event> make_event(std::atomic<u64>* shared) override {
        if (!as_cuda_) return std::make_unique<plain_event>(cpu_.make_event(shared));
        return std::make_unique<cuda_like_event>(shared, memory_->make_event_state());
    }
    [[nodiscard]] std::unique_ptr<device::imported_event> import_event(
        device::device_kind from, const device::event::handle& h, const std::atomic<u64>* shared) override {
        if (!as_cuda_) return cpu_.import_event(from, h, shared);
        address_bytes bytes;
        std::memcpy(bytes.data(), h.data(), bytes.size());
        return std::make_unique<cuda_like_import>(std::bit_cast<const event_state*>(bytes));
    }
    [[nodiscard]] std::unique_ptr<device::mapping> map(const device::memory_handle& handle,
                                                       device::access wanted) override {
        if (own_) return cpu_.map(handle, wanted);
        return std::make_unique<shared_view>(memory_->at(handle), handle.bytes);
    }
    [[nodiscard]] std::unique_ptr<device::mapping> allocate(u64 bytes) override {
        return cpu_.allocate(bytes);
    }
    [[nodiscard]] std::unique_ptr<device::mapping> allocate_host(u64 bytes) override {
        return cpu_.allocate_host(bytes);
    }

private:
    shared_memory* memory_;
    bool as_cuda_, own_;
    queue_counts* counts_;
    device::cpu::context cpu_;
};

}  // namespace

carousel::description counting_stage::configure(const carousel::configuration&) {
    carousel::description d;
    d.finish_threads = finish_threads;
    d.accepts_sampled_inputs = true;
    d.ends = source_ && ends_at_ != ~u64{0};
    if (!sink_) d.outputs = {{"test.number", {{"value", element::u64_, {1}}}, {}}};
    if (source_) d.makes = {{"table", table_bytes}};
    return d;
}

void counting_stage::prepare(carousel::environment& env) {
    for (u32 lane = 0; lane < env.in_flight(); ++lane) seen_.push_back(std::make_unique<u64>(0));
}

void counting_stage::process(carousel::frame& f) {
    if (at_process) at_process();
    if (at_frame) at_frame(f);
    const u64* in = source_ ? nullptr : f.input().plane<const u64>("value").data();
    u64* out = sink_ ? seen_[f.lane()].get() : f.output().plane<u64>("value").data();
    const u64 beyond =
        source_ && f.frame_number() == wild_write_at ? device::slot_alignment + wild_write_bytes : 0;
    f.queue().submit([=, frame_number = f.frame_number(), us = work_us_](device::cpu::pool&) {
        if (us > 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
        *out = in != nullptr ? *in * 3 + 1 : frame_number * 1000;
        // past its only plane, which is padded
        if (beyond != 0) *(reinterpret_cast<std::byte*>(out) + beyond) ^= std::byte{1};
    });
    if (source_ && f.frame_number() >= ends_at_) f.end_stream();
}

void counting_stage::finish(carousel::frame& f) {
    if (at_finish) at_finish(f);
    if (!sink_) return;
    if ((finish_threads == 1 && f.frame_number() != frames.load()) ||
        *seen_[f.lane()] != value_of(f.frame_number(), hops_))
        wrong.fetch_add(1);
    frames.fetch_add(1);
}

std::unique_ptr<device::context> shared_memory::open(bool as_cuda, queue_counts* counts, bool own) {
    return std::make_unique<shared_context>(*this, as_cuda, counts, own);
}

std::byte* shared_memory::at(const device::memory_handle& handle) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<device::mapping>& m = known_[handle.fd];
    if (!m) m = std::make_unique<device::memfd_mapping>(handle);
    return m->data();
}

event_state& shared_memory::make_event_state() {
    const std::lock_guard lock(mutex_);
    return events_.emplace_back();
}

namespace {

u64 canary_of(const threads_of_a_run::options& o) { return o.canaries ? device::canary_bytes : 0; }

shm::private_block make_shared_block() {
    void* const at = ::mmap(nullptr, sizeof(shm::control_block), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    return shm::private_block(static_cast<shm::control_block*>(at));
}

}  // namespace

threads_of_a_run::threads_of_a_run(const options& o) : options_(o), block_(make_shared_block()) {
    std::filesystem::create_directories(folder_.path / "logs");
    format_ = {"test.number", {{"value", ring::element::u64_, {1}}}, {}};
    const u64 slot_bytes = format_.lay_out();
    ring::plan p;
    p.pipeline = "threads";
    p.end = o.frames;
    for (u32 k = 0; k < o.stages; ++k) {
        ring::stage_plan s;
        s.name = "stage" + std::to_string(k);
        if (k > 0) s.inputs = {k - 1};
        s.has_output = k + 1 < o.stages;
        s.owner_commits = !s.has_output || o.canaries;
        s.every = s.has_output ? 1 : o.every;
        s.ends = k == 0 && o.ends_at != ~u64{0};
        s.slot_bytes = s.has_output ? slot_bytes + canary_of(o) : 0;
        for (const auto& [sampler, at] : o.sampled_links)
            if (sampler == k) s.sampled_inputs.push_back(at);
        p.stages.push_back(s);
        counts_.push_back(std::make_unique<queue_counts>());
        made_.push_back(std::make_unique<counting_stage>(k == 0, !s.has_output, k, o.work_us, o.ends_at));
    }
    made_.back()->finish_threads = o.finish_threads;
    made_.back()->at_finish = o.at_finish;
    made_.front()->wild_write_at = o.wild_write_at;
    made_.front()->wild_write_bytes = o.wild_write_bytes;
    ring::initialise(*block_, p);
    for (u32 k = 0; k < block_->links; ++k)
        rings_.push_back(
            device::create_memfd("carousel-test-ring", block_->link[k].slot_bytes * block_->link[k].slots));
    if (o.asset) {
        table_ = device::create_memfd("carousel-test-table", table_bytes);
        block_->assets = 1;
        shm::asset_block& a = block_->asset[0];
        std::string("table").copy(a.name, sizeof a.name - 1);
        a.bytes = 4096;
        a.maker_stage = 0;
    }
    for (u32 k = 0; k < o.stages; ++k) {
        auto [here, there] = shm::socket_pair();
        supervisor.push_back(std::move(here));
        lines_.push_back(std::move(there));
        incarnations_.push_back(ring::appoint(*block_, k));
        (void)ring::revoke(*block_, k, 0);
    }
}

threads_of_a_run::~threads_of_a_run() {
    for (const device::memory_handle& m : rings_) ::close(m.fd);
    if (table_.fd >= 0) ::close(table_.fd);
}

u64 threads_of_a_run::value_in(u32 link, u32 slot) const {
    u64 value = 0;
    const std::byte* at = const_cast<shared_memory&>(memory_).at(rings_[link]) +
                          u64{slot} * block_->link[link].slot_bytes + format_.planes[0].offset;
    std::memcpy(&value, at, sizeof value);
    return value;
}

std::byte* threads_of_a_run::after_slot(u32 link, u64 frame_number) {
    const shm::link_block& l = block_->link[link];
    u32 slot = 0;
    while (slot + 1 < l.slots && ring::load(block_->frames[link].header[slot].ring_sequence) != frame_number)
        ++slot;
    return memory_.at(rings_[link]) + slot * l.slot_bytes + l.slot_bytes - canary_of(options_);
}

stages::attachment threads_of_a_run::attachment_for(u32 stage) {
    stages::attachment a;
    a.run_id = "threads";
    a.runtime_directory = folder_.path.string();
    a.stage = block_->stage[stage].name;
    a.incarnation = incarnations_[stage];
    a.width = a.height = 16;
    a.settings_json = "{}";
    a.kept_json = "[]";
    a.supervisor_grace_s = 60;
    a.depth = options_.depth;
    a.socket = std::move(lines_[stage]);
    if (stage > 0) {
        a.inputs.push_back({block_->stage[stage - 1].name, format_});
        a.links.push_back({stage - 1, "", rings_[stage - 1], canary_of(options_)});
    }
    for (const auto& [sampler, at] : options_.sampled_links) {
        if (sampler != stage) continue;
        a.sampled.push_back({{block_->stage[at].name, format_}, at < stage});
        if (at != stage && at + 1 != stage) a.links.push_back({at, "", rings_[at], canary_of(options_)});
    }
    if (options_.asset) a.assets.push_back({0, "table", table_});
    if (stage + 1 < options_.stages) {
        a.outputs = {format_};
        a.links.push_back({stage, "", rings_[stage], canary_of(options_)});
    }
    return a;
}

void threads_of_a_run::live(u32 stage) {
    counting_stage& s = *made_[stage];
    stages::runtime_sources from;
    from.hooks.peer_rings = options_.peer_rings;
    from.hooks.block_guard = options_.guard;
    from.control = [this](const std::string&) -> shm::control_block& { return *block_; };
    from.device = [this, stage](const device::device_id&, unsigned) {
        return memory_.open(options_.as_cuda, counts_[stage].get(), options_.own_mappings);
    };
    stages::runtime r(attachment_for(stage), s, from);
    stages::heartbeat heart(r);
    r.load_assets(s);
    s.prepare(r);
    if (options_.at_prepared) options_.at_prepared(stage, r);
    stages::stage_runner runner(r, s);
    r.go_live();
    runner.run();
    heart.wait_for_supervisor();
    stages::expect_exit();  // as stage_main() does: the control block does not exist after the end of this
                            // process
}

// A thread that starts after the set-up of another one hides that the two could have met. Relaxed: this wait
// adds no ordering that ThreadSanitizer could take for the stages' own.
void threads_of_a_run::begin_together() noexcept {
    begun_.fetch_add(1, std::memory_order_relaxed);
    while (begun_.load(std::memory_order_relaxed) < options_.stages) std::this_thread::yield();
}

void threads_of_a_run::run() {
    begun_.store(0, std::memory_order_relaxed);
    std::vector<std::thread> threads;
    for (u32 k = 0; k < options_.stages; ++k)
        threads.emplace_back([this, k] {
            begin_together();
            live(k);
        });
    for (std::thread& t : threads) t.join();
}

bool threads_of_a_run::run_as_processes() {
    std::vector<pid_t> children;
    for (u32 k = 0; k < options_.stages; ++k) {
        const pid_t child = ::fork();
        if (child != 0) {
            children.push_back(child);
            continue;
        }
        live(k);
        const bool whole =
            k + 1 < options_.stages || (sink().frames.load() == options_.frames && sink().wrong.load() == 0);
        ::_exit(whole ? 0 : 9);
    }
    bool all = true;
    for (const pid_t child : children) {
        int status = 0;
        all = child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) &&
              WEXITSTATUS(status) == 0 && all;
    }
    return all;
}

}  // namespace carousel::test
