// Times the vertex and the fragment stage on one device, and can write the picture.
//   bench_raster --device cpu|cuda:N --mesh NAME --triangles N --size WxH --frames N [--instances N] [--threads N] [--shading N]
//                [--path automatic|small|medium|large] [--first FRAME] [--png FILE]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "tests/kernels/scene.hpp"

#if CAROUSEL_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

namespace {

using namespace carousel;
using namespace carousel::kernels;

struct options {
    std::string device = "cpu", png, path = "automatic";
    testing::chain_options chain{mesh_shape::bumpy_sphere, 1'000'000, 1920, 1080, 1};
    u32 frames = 50, threads = 0, shading = 0;
    u64 first = 0;
};

options parse(int argc, char** argv) {
    options o;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string key = argv[i], value = argv[i + 1];
        const auto number = [&] { return static_cast<u32>(std::strtoul(value.c_str(), nullptr, 10)); };
        if (key == "--device")
            o.device = value;
        else if (key == "--mesh")
            o.chain.shape = mesh_shape_from(value);
        else if (key == "--triangles")
            o.chain.triangles = number();
        else if (key == "--size")
            std::sscanf(value.c_str(), "%ux%u", &o.chain.width, &o.chain.height);
        else if (key == "--frames")
            o.frames = std::max(1U, number());
        else if (key == "--instances")
            o.chain.instances = number();
        else if (key == "--threads")
            o.threads = number();
        else if (key == "--shading")
            o.shading = number();
        else if (key == "--first")
            o.first = number();
        else if (key == "--path")
            o.path = value;
        else if (key == "--png")
            o.png = value;
        else
            throw config_error("unknown option " + key);
    }
    return o;
}

raster_path path_from(const std::string& name) {
    if (name == "small") return raster_path::small;
    if (name == "medium") return raster_path::medium;
    if (name == "large") return raster_path::large;
    return raster_path::automatic;
}

/// Milliseconds of what `work` enqueues.
class stopwatch {
public:
    explicit stopwatch(device::queue& q) : queue_(q) {
#if CAROUSEL_WITH_CUDA
        if (q.kind() == device::device_kind::cuda) cudaEventCreate(&begin_), cudaEventCreate(&end_);
#endif
    }
    template <typename Work>
    f64 measure(const Work& work) {
#if CAROUSEL_WITH_CUDA
        if (queue_.kind() == device::device_kind::cuda) {
            const auto stream = static_cast<cudaStream_t>(queue_.native_stream());
            cudaEventRecord(begin_, stream);
            work();
            cudaEventRecord(end_, stream);
            cudaEventSynchronize(end_);
            float ms = 0;
            cudaEventElapsedTime(&ms, begin_, end_);
            return ms;
        }
#endif
        const u64 start = now_ns(), cpu = process_cpu_ns();
        work();
        queue_.drain();
        cpu_ms = static_cast<f64>(process_cpu_ns() - cpu) / ns_per_ms;
        return static_cast<f64>(now_ns() - start) / ns_per_ms;
    }

    f64 cpu_ms = 0;  ///< CPU time of all threads in the last measure() on a CPU queue

private:
    device::queue& queue_;
#if CAROUSEL_WITH_CUDA
    cudaEvent_t begin_{}, end_{};
#endif
};

f64 quantile(std::vector<f64> v, f64 q) {
    std::sort(v.begin(), v.end());
    return v[std::min(v.size() - 1, static_cast<std::size_t>(q * static_cast<f64>(v.size())))];
}

/// A PNG whose rows are stored, not packed: no library, so that the program runs anywhere.
class png_writer {
public:
    png_writer(const std::string& file, u32 width, u32 height) : file_(std::fopen(file.c_str(), "wb")) {
        if (file_ == nullptr) throw output_error("can't write " + file);
        const unsigned char signature[8] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10};
        std::fwrite(signature, 1, 8, file_);
        std::vector<u8> header;
        big_endian(header, width), big_endian(header, height);
        header.insert(header.end(), {8, 6, 0, 0, 0});
        chunk("IHDR", header);
    }
    void write(const std::vector<u32>& picture, u32 width) {
        std::vector<u8> data{0x78, 1};
        u32 a = 1, b = 0;  // Adler-32
        for (std::size_t at = 0; at < picture.size(); at += width) {
            std::vector<u8> row(1 + width * 4);
            std::memcpy(row.data() + 1, picture.data() + at, width * 4);
            for (std::size_t from = 0; from < row.size(); from += 65535) {
                const std::size_t n = std::min<std::size_t>(65535, row.size() - from);
                const bool last = at + width == picture.size() && from + n == row.size();
                const u8 begin[5] = {last, u8(n & 255), u8(n >> 8), u8(~n & 255), u8(~n >> 8 & 255)};
                data.insert(data.end(), begin, begin + 5);
                data.insert(data.end(), row.begin() + static_cast<long>(from), row.begin() + static_cast<long>(from + n));
            }
            for (const u8 x : row) a = (a + x) % 65521, b = (b + a) % 65521;
        }
        big_endian(data, b << 16 | a);
        chunk("IDAT", data);
        chunk("IEND", {});
        std::fclose(file_);
    }

private:
    static void big_endian(std::vector<u8>& to, u32 x) {
        for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<u8>(x >> shift));
    }
    void chunk(const char* name, const std::vector<u8>& data) {
        std::vector<u8> all;
        big_endian(all, static_cast<u32>(data.size()));
        all.insert(all.end(), name, name + 4);
        all.insert(all.end(), data.begin(), data.end());
        u32 crc = ~0U;
        for (std::size_t i = 4; i < all.size(); ++i) {
            crc ^= all[i];
            for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ (crc & 1U ? 0xedb88320U : 0U);
        }
        big_endian(all, ~crc);
        std::fwrite(all.data(), 1, all.size(), file_);
    }
    std::FILE* file_;
};

u64 hash_of(const std::vector<u32>& picture) {
    u64 h = 1469598103934665603ULL;
    for (const u32 p : picture) h = (h ^ p) * 1099511628211ULL;
    return h;
}

int run(const options& o) {
    device::device_id id;
    if (o.device.rfind("cuda", 0) == 0) {
        id.kind = device::device_kind::cuda;
        id.ordinal = o.device.size() > 5 ? std::atoi(o.device.c_str() + 5) : 0;
    }
    const auto context = device::open(id, o.threads);
    const auto queue = context->make_queue();
    testing::chain chain(*context, *queue, o.chain);
    chain.scene.shading = o.shading;
    const raster_path path = path_from(o.path);
    chain.render(o.first, path);
    stopwatch watch(*queue);
    std::vector<f64> vertex, fragment, vertex_cpu, fragment_cpu;
    for (u32 f = 0; f < o.frames + 3; ++f) {
        chain.animate(o.first + f);
        queue->drain();
        const f64 v = watch.measure([&] { chain.vertex(); }), vc = watch.cpu_ms;
        const f64 p = watch.measure([&] { chain.fragment(path); }), pc = watch.cpu_ms;
        if (f >= 3) vertex.push_back(v), fragment.push_back(p), vertex_cpu.push_back(vc), fragment_cpu.push_back(pc);
    }
    const std::vector<u32> picture = chain.render(o.first, path);
    const triangle_counters c = chain.counters();
    std::printf("%s | %s %u triangles x%u, %ux%u | small %u large %u culled %u dropped %u\n", context->description().c_str(),
                mesh_shape_names()[static_cast<std::size_t>(o.chain.shape)].c_str(), chain.layout().counts.triangle_count,
                o.chain.instances, o.chain.width, o.chain.height, c.small, c.large, c.culled, c.not_finite + c.bad_index);
    std::printf("vertex   median %.4f ms  p95 %.4f ms  CPU time of all threads %.4f ms\n", quantile(vertex, 0.5),
                quantile(vertex, 0.95), quantile(vertex_cpu, 0.5));
    std::printf("fragment median %.4f ms  p95 %.4f ms  CPU time of all threads %.4f ms\nhash %016llx\n", quantile(fragment, 0.5),
                quantile(fragment, 0.95), quantile(fragment_cpu, 0.5), static_cast<unsigned long long>(hash_of(picture)));
    if (!o.png.empty()) png_writer(o.png, o.chain.width, o.chain.height).write(picture, o.chain.width);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(parse(argc, argv));
    } catch (const error& e) {
        std::fprintf(stderr, "bench_raster: %s\n", e.what());
        return e.code();
    }
}
