// The source of a run, as your own program: feed RUN PORT [FRAMES]
#include <carousel/port.hpp>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

using carousel::u64;
using carousel::u8;

static u64 now_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<u64>(t.tv_sec) * 1'000'000'000 + static_cast<u64>(t.tv_nsec);
}

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "feed RUN PORT [FRAMES]\n");
        return 2;
    }
    const u64 frames = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 100;
    try {
        auto run = carousel::open(argv[1]);
        auto camera = run.writer(argv[2]);
        while (auto f = camera.next()) {  // if a program was killed before it committed a frame, next()
                                          // returns this frame again
            if (f.frame_number() == frames) {
                camera.end();  // permitted because ports.toml has ends = true for this port
                std::printf("the stream ends before frame %llu\n", static_cast<unsigned long long>(frames));
                return 0;
            }
            const auto color = f.plane<u8>("color");
            const std::vector<u8> picture(color.size(), static_cast<u8>(f.frame_number()));
            f.queue().copy(color.data(), picture.data(), picture.size());  // only enqueues the copy
            f.metadata().set("exposure_ms", 3.5);
            f.set_capture_ns(now_ns());
            f.queue().drain();  // waits for the copy, because `picture` goes out of scope
            f.commit();
        }
        std::printf("the run is over\n");
        return 0;
    } catch (const carousel::error& e) {  // the message includes what to do
        std::fprintf(stderr, "%s\n", e.what());
        return e.code();
    }
}
