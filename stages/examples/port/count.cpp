// Reads every frame of a run exactly once, in your own program: count RUN PORT
#include <carousel/port.hpp>

#include <cstdio>
#include <vector>

using carousel::u8;

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "count RUN PORT\n");
        return 2;
    }
    try {
        auto run = carousel::open(argv[1]);
        unsigned long long seen = 0;
        for (auto& f : run.reader(argv[2])) {  // ends with the run
            const auto color = f.plane<const u8>("color");
            std::vector<u8> here(color.size());
            f.queue().copy(here.data(), color.data(), here.size());
            f.queue().drain();
            double sum = 0;
            for (const u8 b : here) sum += b;
            std::printf("frame %llu: mean %.1f, exposure %.1f ms\n",
                        static_cast<unsigned long long>(f.frame_number()),
                        sum / static_cast<double>(here.size()),
                        f.metadata().get<double>("exposure_ms").value_or(0));
            f.commit();  // if the program is killed before the commit, the next program gets this frame again
            ++seen;
        }
        std::printf("%llu frames\n", seen);
        return 0;
    } catch (const carousel::error& e) {  // the message includes what to do
        std::fprintf(stderr, "%s\n", e.what());
        return e.code();
    }
}
