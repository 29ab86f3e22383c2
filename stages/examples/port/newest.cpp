// Reads the newest frames of a run from outside: newest RUN STAGE [FRAMES [DEVICE]]
#include <carousel/port.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using carousel::latest_frame;
using carousel::u8;

// The mean of a plane's bytes; on a GPU they are copied first, on the frame's stream.
static double brightness(const latest_frame& f, const std::string& plane) {
    const auto bytes = f.planes().bytes(plane);
    std::vector<u8> here(bytes.size());
    f.queue().copy(here.data(), bytes.data(), bytes.size());
    f.queue().drain();
    double sum = 0;
    for (const u8 b : here) sum += b;
    return sum / static_cast<double>(here.size());
}

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "newest RUN STAGE [FRAMES [DEVICE]]\n");
        return 2;
    }
    const int frames = argc > 3 ? std::atoi(argv[3]) : 10;
    try {
        auto run = carousel::open(argv[1], {.device = argc > 4 ? argv[4] : ""});
        auto newest = run.latest(argv[2]);
        std::printf("%s: %s\n", newest.stage().c_str(), newest.format().describe().c_str());
        int seen = 0;
        for (const auto& f : newest) {  // the loop ends when the run ends; it may miss frames, and it never
                                        // blocks the run
            const std::string& plane = f.format().planes.front().name;
            std::printf("frame %llu: %s %.4f\n", static_cast<unsigned long long>(f.frame_number()),
                        plane.c_str(), brightness(f, plane));
            if (++seen == frames) return 0;
        }
        std::printf("the run is over: %s\n", newest.ending().c_str());
        return 0;
    } catch (const carousel::error& e) {  // the message includes what to do
        std::fprintf(stderr, "%s\n", e.what());
        return e.code();
    }
}
