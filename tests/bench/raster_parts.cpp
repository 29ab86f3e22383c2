// A frame's device time by part: each kernel of the vertex and the fragment stage, between two events; for a
// cell that begins with "looks:", each kernel of the stages of looks.toml.
//   raster_parts [--frames N] [--device N] [looks:]MESH:TRIANGLES:WIDTHxHEIGHT ...
// The stages are not changed for it: their work is captured into a graph, whose nodes are then launched one
// by one with an event after each. A long fill goes first, so that the launches wait for the GPU and not the
// GPU for the launches. An event costs time of its own, and parts do not overlap as they do in a frame
// (kernels/cuda/launch.cuh), so that they add up to more than `together`, which has events only before and
// after the two stages.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "kernels/looks_chain.hpp"

namespace {

using namespace carousel;
using namespace carousel::kernels;

void check(cudaError_t status, const char* what) {
    if (status != cudaSuccess)
        throw cuda_error(static_cast<int>(status), std::string(what) + ": " + cudaGetErrorString(status));
}

f64 median(std::vector<f64> v) {
    std::sort(v.begin(), v.end());
    return v.empty() ? 0.0 : v[v.size() / 2];
}

/// The work that was enqueued in a queue, to be enqueued again part by part.
class recorded_work {
public:
    template <typename Work>
    recorded_work(cudaStream_t stream, const Work& work) : stream_(stream) {
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing the stages");
        work();
        check(cudaStreamEndCapture(stream, &graph_), "capturing the stages");
        std::size_t count = 0;
        check(cudaGraphGetNodes(graph_, nullptr, &count), "counting the parts");
        nodes_.resize(count);
        check(cudaGraphGetNodes(graph_, nodes_.data(), &count), "reading the parts");
    }
    ~recorded_work() { cudaGraphDestroy(graph_); }
    recorded_work(const recorded_work&) = delete;
    recorded_work& operator=(const recorded_work&) = delete;

    [[nodiscard]] std::size_t size() const { return nodes_.size(); }

    [[nodiscard]] std::string name(std::size_t i) const {
        const char* mangled = nullptr;
        check(cudaFuncGetName(&mangled, kernel(i).func), "a kernel's name");
        // _ZN8carousel7kernels4cuda<length><anonymous namespace><length><name>...: the last component that a
        // length introduces
        std::string last = mangled;
        for (const char* at = std::strstr(mangled, "_ZN") != nullptr ? mangled + 3 : mangled;
             *at >= '0' && *at <= '9';) {
            char* rest = nullptr;
            const unsigned long length = std::strtoul(at, &rest, 10);
            if (length > std::strlen(rest)) break;
            last.assign(rest, length);
            at = rest + length;
        }
        return last;
    }

    void enqueue(std::size_t i) const {
        const cudaKernelNodeParams p = kernel(i);
        check(cudaLaunchKernel(p.func, p.gridDim, p.blockDim, p.kernelParams, p.sharedMemBytes, stream_),
              "a kernel");
    }

private:
    [[nodiscard]] cudaKernelNodeParams kernel(std::size_t i) const {
        cudaKernelNodeParams p{};
        check(cudaGraphKernelNodeGetParams(nodes_[i], &p), "a kernel's arguments");
        return p;
    }
    cudaStream_t stream_;
    cudaGraph_t graph_ = nullptr;
    std::vector<cudaGraphNode_t> nodes_;
};

/// Events between which the GPU never waits for the host.
class timeline {
public:
    explicit timeline(device::context& context, device::queue& q)
        : queue_(q),
          stream_(static_cast<cudaStream_t>(q.native_stream())),
          delay_(context.allocate(1ULL << 30)) {}
    void begin() {
        queue_.drain();
        check(cudaMemsetAsync(delay_->data(), 0, delay_->bytes(), stream_), "the delay");
        used_ = 0;
        mark();
    }
    void mark() {
        if (used_ == events_.size()) {
            events_.emplace_back();
            check(cudaEventCreate(&events_.back()), "an event");
        }
        check(cudaEventRecord(events_[used_++], stream_), "an event");
    }
    /// Microseconds between mark i and the next.
    [[nodiscard]] f64 between(std::size_t i) const {
        check(cudaEventSynchronize(events_[i + 1]), "waiting");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, events_[i], events_[i + 1]), "a time");
        return ms * 1000.0;
    }

private:
    device::queue& queue_;
    cudaStream_t stream_;
    std::unique_ptr<device::mapping> delay_;
    std::vector<cudaEvent_t> events_;
    std::size_t used_ = 0;
};

chain_options cell_from(const std::string& text) {
    chain_options o;
    const std::size_t a = text.find(':'), b = text.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos ||
        std::sscanf(text.c_str() + b + 1, "%ux%u", &o.width, &o.height) != 2) {
        throw config_error("\"" + text + "\" is no MESH:TRIANGLES:WIDTHxHEIGHT");
    }
    o.shape = mesh_shape_from(text.substr(0, a));
    o.triangles = static_cast<u32>(std::strtoul(text.c_str() + a + 1, nullptr, 10));
    return o;
}

/// A stage: the function that enqueues its work.
struct stage_work {
    const char* name;
    std::function<void()> enqueue;
};

/// Prints the time of each stage and of each of its kernels.
void measure(timeline& line, cudaStream_t stream, const std::string& text, u32 frames,
             const std::vector<stage_work>& stages, const std::function<void(u32)>& animate) {
    std::vector<std::unique_ptr<recorded_work>> recorded;
    for (const stage_work& s : stages) {
        s.enqueue();
        recorded.push_back(std::make_unique<recorded_work>(stream, s.enqueue));
    }
    std::vector<std::vector<std::vector<f64>>> parts(stages.size());
    std::vector<std::vector<f64>> alone(stages.size());
    std::vector<f64> together;
    for (std::size_t s = 0; s < stages.size(); ++s) parts[s].resize(recorded[s]->size());
    for (u32 f = 0; f < frames; ++f) {
        animate(f);
        line.begin();
        for (const auto& work : recorded) {
            for (std::size_t i = 0; i < work->size(); ++i) {
                work->enqueue(i);
                line.mark();
            }
        }
        std::size_t at = 0;
        for (std::size_t s = 0; s < stages.size(); ++s)
            for (auto& times : parts[s]) times.push_back(line.between(at++));
        line.begin();
        for (const stage_work& s : stages) s.enqueue();
        line.mark();
        together.push_back(line.between(0));
        line.begin();
        for (const stage_work& s : stages) {
            s.enqueue();
            line.mark();
        }
        for (std::size_t s = 0; s < stages.size(); ++s) alone[s].push_back(line.between(s));
    }
    std::printf("%-40s together %7.1f us\n", text.c_str(), median(together));
    for (std::size_t s = 0; s < stages.size(); ++s) {
        std::printf("    %-9s %7.1f:", stages[s].name, median(alone[s]));
        for (std::size_t i = 0; i < parts[s].size(); ++i)
            std::printf(" %s %.1f", recorded[s]->name(i).c_str(), median(parts[s][i]));
        std::printf("\n");
    }
    std::fflush(stdout);
}

void measure_cell(device::context& context, device::queue& queue, timeline& line, const std::string& text,
                  u32 frames) {
    const auto stream = static_cast<cudaStream_t>(queue.native_stream());
    if (text.starts_with("looks:")) {
        // the stages of looks.toml, with 24 copies of the mesh
        chain_options o = cell_from(text.substr(6));
        o.instances = 24, o.triangles /= o.instances, o.stand = arrangement::field, o.spacing = 1.75F;
        looks_chain looks(context, queue, o, 1536, 6.5F);
        looks.animate(0);
        measure(line, stream, text, frames,
                {{"vertex", [&] { looks.vertex(); }},
                 {"fragment", [&] { looks.surface(); }},
                 {"shadow", [&] { looks.shadow(); }},
                 {"light", [&] { looks.light(); }},
                 {"taa", [&] { looks.taa(); }},
                 {"post", [&] { looks.post(); }}},
                [&](u32 f) {
                    looks.jitter(body::jitter_at(f));
                    looks.animate(f);
                });
        return;
    }
    kernels::chain chain(context, queue, cell_from(text));
    chain.animate(0);
    measure(line, stream, text, frames,
            {{"vertex", [&] { chain.vertex(); }}, {"fragment", [&] { chain.fragment(); }}},
            [&](u32 f) { chain.animate(f); });
    const triangle_counters c = chain.counters();
    std::printf("    small %u large %u\n", c.small, c.large);
}

int run(int argc, char** argv) {
    u32 frames = 40;
    device::device_id id;
    id.kind = device::device_kind::cuda;
    std::vector<std::string> cells;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--frames" && i + 1 < argc) {
            frames = std::max(1U, static_cast<u32>(std::strtoul(argv[++i], nullptr, 10)));
        } else if (word == "--device" && i + 1 < argc) {
            id.ordinal = std::atoi(argv[++i]);
        } else {
            cells.push_back(word);
        }
    }
    if (cells.empty()) {
        for (const char* size : {"1920x1080", "3840x2160"})
            for (const char* triangles : {"10000", "100000", "1000000", "4000000", "10000000"})
                cells.push_back(std::string("bumpy-sphere:") + triangles + ":" + size);
        for (const char* other : {"quad-stack:2", "quad-stack:200", "quad-stack:2000", "triangle-soup:10000",
                                  "triangle-soup:1000000", "long-slivers:10000", "long-slivers:1000000",
                                  "fractal-terrain:1000000", "torus-knots:1000000"})
            cells.push_back(std::string(other) + ":1920x1080");
    }
    const auto context = device::open(id);
    const auto queue = context->make_queue();
    std::printf("%s, medians of %u frames, microseconds\n", context->description().c_str(), frames);
    timeline line(*context, *queue);
    for (const std::string& cell : cells) measure_cell(*context, *queue, line, cell, frames);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const error& e) {
        std::fprintf(stderr, "raster_parts: %s\n", e.what());
        return e.code();
    }
}
