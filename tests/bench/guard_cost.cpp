// The cost of guards per frame, in one process, where the variation of one run's start does not hide it.
//   guard_cost [--pairs 20] [--frames 60] [--size 1920x1080] [--triangles 100000] [--cpu-us 0] [--device 0]
//              [--graphs 1] [--seed 16]
//
// Device time: the demo's four stages enqueue their work on one queue, one frame at a time, with the status
// words of a run; between two events, the host far ahead. As in a run each stage's work is a graph, and an
// event is recorded after it, so that nothing of one stage overlaps with the next. --graphs 0: launches
// instead of graphs, and no event between stages: early launches there gain more than in any run.
// Without: each ring is one block of eight slots, mapped write-only. With: inputs and the mesh mapped a
// second time, read-only; each slot a separate allocation followed by a gap; canaries, planted with a slot's
// first frame, checked; all of that except the canaries, as in a run. Each measurement creates its rings
// again; the pictures' hashes are compared. CPU time, of the thread that enqueues and reads the results of
// the checks, is measured as well.
//
// The closed control block: the ring's own steps of a frame through source, middle and sink, in a process for
// each measurement; with open pages, and with pages closed by keys if the CPU has them, else by page
// permissions.
//
// In each round every arm runs once, in a random order; a line has the median ratio of `pairs` rounds and the
// interval that contains the true median with 95 % by the binomial distribution of ranks. --cpu-us: of a
// run's frame, in all stages (guards_gpu.py --parts cost): the CPU's differences are then given in percent of
// it. The placement of memory on the GPU affects all figures: each measurement allocates a random amount of
// unused memory first, by --seed, so that its rings are placed elsewhere; guard_cost.py has several
// processes, a seed each.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "bench/stopwatch.hpp"
#include "core/errors.hpp"
#include "device/canary.hpp"
#include "device/cuda/memory.hpp"
#include "device/same_work.hpp"
#include "kernels/kernels.hpp"
#include "kernels/plane_hash.hpp"
#include "shm/fd_socket.hpp"
#include "tests/bench/guard_cost.hpp"

namespace {

using namespace carousel;
using namespace carousel::guard_cost;

struct guards {
    bool for_reading = false, gaps = false, canaries = false;
};

/// Its slots: a status word, the payload, a canary.
class ring_memory {
public:
    static constexpr u32 slots = 8;
    static constexpr u64 payload_at = device::slot_alignment;

    ring_memory(device::context& context, device::cuda::memory_maker& maker, u64 payload, const guards& g)
        : canary_at_(payload_at + (payload + 255) / 256 * 256),
          slot_bytes_(canary_at_ + (g.canaries ? device::canary_bytes : 0)) {
        device::memory_handle all;
        if (g.gaps) {
            for (u32 k = 0; k < slots; ++k) {
                device::memory_handle one = maker.make_vmm(slot_bytes_);
                one.piece_fds = std::move(all.piece_fds);
                one.piece_fds.push_back(std::exchange(one.fd, -1));
                one.bytes += all.bytes;
                all = std::move(one);
            }
            all.pieces = slots;
        } else {
            all = maker.make_vmm(slot_bytes_ * slots);
        }
        written_ = context.map(all, device::access::write);
        read_ = context.map(all, g.for_reading ? device::access::read : device::access::write);
        for (const int fd : all.piece_fds) ::close(fd);
        if (all.fd >= 0) ::close(all.fd);
    }
    [[nodiscard]] std::byte* to_write(u64 n) const { return slot(*written_, n) + payload_at; }
    /// Writes are prevented by the mapping, not by const: stages take some inputs by plain pointers.
    [[nodiscard]] std::byte* to_read(u64 n) const { return slot(*read_, n) + payload_at; }
    [[nodiscard]] auto* word_to_write(u64 n) const {
        return reinterpret_cast<device::status_word*>(slot(*written_, n));
    }
    [[nodiscard]] const auto* word_to_read(u64 n) const {
        return reinterpret_cast<const device::status_word*>(slot(*read_, n));
    }
    [[nodiscard]] u64* canary_to_write(u64 n) const { return canary(*written_, n); }
    [[nodiscard]] u64* canary_to_read(u64 n) const { return canary(*read_, n); }

private:
    [[nodiscard]] std::byte* slot(const device::mapping& m, u64 n) const {
        return m.slot(static_cast<u32>(n % slots), slot_bytes_);
    }
    [[nodiscard]] u64* canary(const device::mapping& m, u64 n) const {
        return reinterpret_cast<u64*>(slot(m, n) + canary_at_);
    }
    u64 canary_at_, slot_bytes_;
    std::unique_ptr<device::mapping> written_, read_;
};

struct frame_cost {
    f64 device_us = 0, host_us = 0;
    u64 hash = 0;
};

/// geometry -> vertex -> fragment -> display on one queue.
class demo {
public:
    demo(device::context& context, device::cuda::memory_maker& maker, const options& o, const guards& g)
        : options_(o),
          guards_(g),
          queue_(context.make_queue()),
          layout_(kernels::lay_out_mesh(
              kernels::procedural_counts(kernels::mesh_shape::bumpy_sphere, o.triangles))),
          mesh_(context, maker, layout_.bytes, {g.for_reading, false, false}),
          geometry_(context, maker, 512, g),
          vertex_(context, maker, 512 + u64{layout_.counts.triangle_count} * 4, g),
          fragment_(context, maker, u64{o.width} * o.height * 4, g),
          scratch_(context.allocate(
              kernels::fragment_scratch_bytes(device::device_kind::cuda, o.width, o.height))),
          hash_scratch_(
              context.allocate(std::max<u64>(256, kernels::hash_scratch_bytes(device::device_kind::cuda)))),
          words_(context.allocate_host(64 + 8 * sizeof(device::canary_check))),
          watch_(bench::make_stopwatch(*queue_)) {
        for (u32 k = 0; k < stages && o.graphs; ++k) {
            alike_[k] = device::make_same_work(*queue_);
            done_[k] = context.make_event(nullptr);
        }
        kernels::generate_mesh(*queue_, {kernels::mesh_shape::bumpy_sphere, o.triangles, mesh_.to_write(0)});
        queue_->drain();
    }

    frame_cost frame(u64 n) {
        watch_->start();
        const u64 began = thread_cpu_ns();
        enqueue(n);
        const u64 enqueued = thread_cpu_ns() - began;
        watch_->lap();
        const f64 device_us = watch_->read().front().ms * 1000;
        const u64 through = thread_cpu_ns();
        if (*torn() != 0) throw error(1, "a status word is another than was written");
        for (u32 k = 0; guards_.canaries && k < checks_; ++k)
            if (found()[k].result() != device::canary_whole) throw error(1, "a canary is not whole");
        const u64 checked_ns = thread_cpu_ns() - through;
        return {device_us, static_cast<f64>(enqueued + checked_ns) / 1000, *hash()};
    }

private:
    [[nodiscard]] u64* hash() const { return reinterpret_cast<u64*>(words_->data()); }
    [[nodiscard]] u32* torn() const { return reinterpret_cast<u32*>(words_->data() + 8); }
    [[nodiscard]] device::canary_check* found() const {
        return reinterpret_cast<device::canary_check*>(words_->data() + 64);
    }

    /// The runner's work before and after a stage's own work.
    void status(u64 n, const ring_memory* in, const ring_memory* out, bool first) {
        device::status_step step;
        step.torn = torn();
        if (in != nullptr)
            step.expect(in->word_to_read(n), {n, 1, static_cast<u32>(device::status_state::ready)});
        step.value = {n, 1,
                      static_cast<u32>(first ? device::status_state::writing : device::status_state::ready)};
        if (out != nullptr) step.store_at(out->word_to_write(n));
        std::array<device::canary_step, 2> checks;
        std::size_t count = 0;
        for (const ring_memory* ring : {in, out}) {
            if (!guards_.canaries || first || ring == nullptr) continue;
            u64* const at = ring == in ? ring->canary_to_read(n) : ring->canary_to_write(n);
            found()[checks_].clear();
            checks[count++] = {at, key(ring, n), &found()[checks_++]};
        }
        device::guarded_status(*queue_, step, std::span(checks).first(count));
    }
    void plant(u64 n, const ring_memory* out) {
        if (!guards_.canaries || out == nullptr || n >= ring_memory::slots) return;
        const device::canary_step plant{out->canary_to_write(n), key(out, n), nullptr};
        device::plant_canaries(*queue_, std::span(&plant, 1));
    }
    [[nodiscard]] u64 key(const ring_memory* of, u64 n) const {
        const u32 link = of == &geometry_ ? 0 : of == &vertex_ ? 1 : 2;
        return device::canary_key(link, static_cast<u32>(n % ring_memory::slots), 1);
    }

    /// A stage's work as the runner has it.
    template <typename F>
    void stage(u64 n, const ring_memory* in, const ring_memory* out, F&& work) {
        const u32 k = stage_++;
        plant(n, out);
        if (alike_[k]) alike_[k]->begin();
        status(n, in, out, true);
        work();
        status(n, in, out, false);
        if (!alike_[k]) return;
        alike_[k]->end();
        done_[k]->record(*queue_, n);
    }

    void enqueue(u64 n) {
        checks_ = stage_ = 0;
        const auto draw = [](std::byte* slot) { return reinterpret_cast<kernels::draw_record*>(slot); };
        const auto models = [](std::byte* slot) { return reinterpret_cast<f32*>(slot + 256); };
        const auto triangles = [](std::byte* slot) {
            return kernels::triangle_buffers{reinterpret_cast<kernels::triangle_counters*>(slot),
                                             reinterpret_cast<kernels::instance_record*>(slot + 256),
                                             reinterpret_cast<u32*>(slot + 512), 1};
        };
        static_assert(sizeof(kernels::draw_record) <= 256 && sizeof(kernels::triangle_counters) <= 256 &&
                      sizeof(kernels::instance_record) <= 256);
        stage(n, nullptr, &geometry_, [&] {
            kernels::animate_instances(
                *queue_, {n, scene_, 1, 2.4F, draw(geometry_.to_write(n)), models(geometry_.to_write(n))});
        });
        stage(n, &geometry_, &vertex_, [&] {
            kernels::vertex_stage(
                *queue_, {layout_, mesh_.to_read(0), draw(geometry_.to_read(n)), models(geometry_.to_read(n)),
                          scene_, options_.width, options_.height, triangles(vertex_.to_write(n))});
        });
        stage(n, &vertex_, &fragment_, [&] {
            kernels::fragment_stage(
                *queue_, {layout_, mesh_.to_read(0), triangles(vertex_.to_read(n)), scene_, options_.width,
                          options_.height, reinterpret_cast<u8*>(fragment_.to_write(n)), scratch_->data(),
                          scratch_->bytes()});
        });
        stage(n, &fragment_, nullptr, [&] {
            kernels::hash_plane(
                *queue_, {fragment_.to_read(n), u64{options_.width} * 4, options_.height,
                          u64{options_.width} * 4, hash_scratch_->data(), hash_scratch_->bytes(), hash()});
        });
    }

    options options_;
    guards guards_;
    std::unique_ptr<device::queue> queue_;
    kernels::mesh_layout layout_;
    kernels::scene_state scene_;
    ring_memory mesh_, geometry_, vertex_, fragment_;
    std::unique_ptr<device::mapping> scratch_, hash_scratch_, words_;
    std::unique_ptr<bench::stopwatch> watch_;
    static constexpr u32 stages = 4;
    std::array<std::unique_ptr<device::same_work>, stages> alike_;  ///< null: launches
    std::array<std::unique_ptr<device::event>, stages> done_;
    u32 checks_ = 0, stage_ = 0;
};

/// Unused memory, up to 128 MiB in up to 32 pieces, so that later allocations are placed elsewhere.
class ballast {
public:
    ballast(device::cuda::memory_maker& maker, std::minstd_rand& dice) {
        for (u64 left = dice() % 33; left > 0; --left) {
            const device::memory_handle piece = maker.make_vmm(u64{1 + dice() % 2} * 2 * 1024 * 1024);
            held_.emplace_back(piece.fd);
        }
    }

private:
    std::vector<shm::unique_fd> held_;
};

/// Medians over its frames; the hash is of all of them.
frame_cost measure(device::context& context, device::cuda::memory_maker& maker, const options& o,
                   const guards& g) {
    demo d(context, maker, o, g);
    std::vector<f64> device_us, host_us;
    u64 hash = 0;
    constexpr u32 warm = 10;
    for (u32 n = 0; n < warm + o.frames; ++n) {
        const frame_cost c = d.frame(n);
        hash = hash * 0x9E37'79B9'7F4A'7C15 + c.hash;
        if (n >= warm) device_us.push_back(c.device_us), host_us.push_back(c.host_us);
    }
    return {median(device_us), median(host_us), hash};
}

void device_rows(const options& o) {
    constexpr struct {
        const char* name;
        guards how;
    } arms[] = {{"none", {}},
                {"none, once more", {}},
                {"inputs and mesh for reading", {true, false, false}},
                {"gaps", {false, true, false}},
                {"canaries", {false, false, true}},
                {"reading and gaps", {true, true, false}}};
    device::device_id id;
    id.kind = device::device_kind::cuda;
    id.ordinal = o.gpu;
    const auto context = device::open(id);
    device::cuda::memory_maker maker(id);
    fmt::print("{}, {}x{}, {} triangles, {} frames a measurement, {}\n\n", context->description(), o.width,
               o.height, o.triangles, o.frames, o.graphs ? "a graph a stage" : "launches");
    fmt::print(
        "| guard | a frame's | rounds | without, us | with, us | change | 95 % "
        "|\n|---|---|---|---|---|---|---|\n");
    std::array<std::vector<f64>, std::size(arms)> device_us, host_us;
    std::minstd_rand dice(o.seed);
    u64 hash = 0;
    for (u32 round = 0; round < o.pairs; ++round) {
        std::array<std::size_t, std::size(arms)> order{};
        for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
        std::shuffle(order.begin(), order.end(), dice);
        for (const std::size_t k : order) {
            const ballast elsewhere(maker, dice);
            const frame_cost c = measure(*context, maker, o, arms[k].how);
            if (hash == 0) hash = c.hash;
            if (c.hash != hash) throw error(1, fmt::format("{}: other pictures", arms[k].name));
            device_us[k].push_back(c.device_us), host_us[k].push_back(c.host_us);
        }
    }
    for (std::size_t k = 1; k < std::size(arms); ++k) {
        print_ratio(arms[k].name, "device time", device_us[0], device_us[k]);
        print_ratio(arms[k].name, "CPU time of the host's part", host_us[0], host_us[k]);
        print_share(arms[k].name, o, host_us[0], host_us[k]);
    }
}

options read(int argc, char** argv) {
    options o;
    if (argc % 2 == 0) throw config_error(std::string(argv[argc - 1]) + ": a value is missing");
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string word = argv[i];
        const char* value = argv[i + 1];
        if (word == "--pairs")
            o.pairs = static_cast<u32>(std::strtoul(value, nullptr, 10));
        else if (word == "--frames")
            o.frames = static_cast<u32>(std::strtoul(value, nullptr, 10));
        else if (word == "--triangles")
            o.triangles = static_cast<u32>(std::strtoul(value, nullptr, 10));
        else if (word == "--cpu-us")
            o.cpu_us = std::strtod(value, nullptr);
        else if (word == "--graphs")
            o.graphs = std::atoi(value) != 0;
        else if (word == "--device")
            o.gpu = std::atoi(value);
        else if (word == "--seed")
            o.seed = static_cast<u32>(std::strtoul(value, nullptr, 10));
        else if (word != "--size" || std::sscanf(value, "%ux%u", &o.width, &o.height) != 2)
            throw config_error(word + " " + value + ": not known; see the head of guard_cost.cpp");
    }
    if (o.pairs < 6) throw config_error("--pairs: 6 at least, or there is no interval of 95 %");
    return o;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const options o = read(argc, argv);
        ring_rows(o);
        device_rows(o);
        return 0;
    } catch (const error& e) {
        std::fprintf(stderr, "guard_cost: %s\n", e.what());
        return e.code();
    }
}
