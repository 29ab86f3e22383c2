// A frame's device time by part: each kernel of the vertex and the fragment stage, between two events.
//   raster_parts [--frames N] [--device N] MESH:TRIANGLES:WIDTHxHEIGHT ...
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
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "kernels/chain.hpp"

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

void measure(device::context& context, device::queue& queue, timeline& line, const std::string& text,
             u32 frames) {
    kernels::chain chain(context, queue, cell_from(text));
    const auto stream = static_cast<cudaStream_t>(queue.native_stream());
    (void)chain.render(0);
    const recorded_work vertex(stream, [&] { chain.vertex(); }), fragment(stream, [&] { chain.fragment(); });
    const std::size_t parts = vertex.size() + fragment.size();
    std::vector<std::vector<f64>> times(parts);
    std::vector<f64> together, vertex_alone, fragment_alone;
    for (u32 f = 0; f < frames; ++f) {
        chain.animate(f);
        line.begin();
        for (std::size_t i = 0; i < parts; ++i) {
            i < vertex.size() ? vertex.enqueue(i) : fragment.enqueue(i - vertex.size());
            line.mark();
        }
        for (std::size_t i = 0; i < parts; ++i) times[i].push_back(line.between(i));
        line.begin();
        chain.vertex();
        chain.fragment();
        line.mark();
        together.push_back(line.between(0));
        line.begin();
        chain.vertex();
        line.mark();
        chain.fragment();
        line.mark();
        vertex_alone.push_back(line.between(0)), fragment_alone.push_back(line.between(1));
    }
    const triangle_counters c = chain.counters();
    std::printf("%-40s vertex %7.1f  fragment %7.1f  together %7.1f us  small %u large %u\n   ", text.c_str(),
                median(vertex_alone), median(fragment_alone), median(together), c.small, c.large);
    f64 without_resolve = 0;
    for (std::size_t i = 0; i < parts; ++i) {
        const std::string name = i < vertex.size() ? vertex.name(i) : fragment.name(i - vertex.size());
        if (name != "resolve") without_resolve += median(times[i]);
        std::printf(" %s %.1f", name.c_str(), median(times[i]));
    }
    std::printf(" | all but resolve %.1f\n", without_resolve);
    std::fflush(stdout);
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
    for (const std::string& cell : cells) measure(*context, *queue, line, cell, frames);
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
