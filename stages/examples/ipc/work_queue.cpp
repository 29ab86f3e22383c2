// Submits tiles and processes them; each tile is committed once: work_queue submit NUMBER | work_queue run
#include <carousel/ipc.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

struct tile {
    unsigned x, y;
};

int main(int argc, char** argv) {
    const std::string deed = argc > 1 ? argv[1] : "";
    try {
        auto lab = carousel::ipc::open("lab");
        auto tiles = lab.work_queue<tile>("tiles", 512, 3);  // a tile gets three attempts; after that it
                                                             // becomes a dead letter
        if (deed == "submit") {
            const unsigned number = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 100;
            for (unsigned k = 0; k < number; ++k) tiles.submit({k % 16, k / 16}, std::chrono::seconds(10));
            std::printf("%u tiles submitted\n", number);
        } else if (deed == "run") {
            unsigned done = 0;
            while (auto task = tiles.try_claim()) {
                // The work. If this process dies here, another one gets the tile, with one more attempt
                // counted.
                std::printf("tile %u %u, attempt %u\n", task->value().x, task->value().y,
                            task->failed_attempts() + 1);
                task->commit();
                ++done;
            }
            std::printf("%u tiles done, %u dead letters\n", done, tiles.dead_letters());
        } else {
            return 2;
        }
        return 0;
    } catch (const carousel::error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return e.code();
    }
}
