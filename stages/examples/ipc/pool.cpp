// Passes blocks of shared memory between processes without a copy: pool send NUMBER | pool take NUMBER
#include <carousel/ipc.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

struct picture {  // travels with a block
    unsigned width, height, number;
};

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const bool send = std::string(argv[1]) == "send";
    const unsigned number = static_cast<unsigned>(std::atoi(argv[2]));
    try {
        auto lab = carousel::ipc::open("lab");
        auto pool = lab.pool("pictures", 8 << 20);
        auto travelling = lab.block_queue<picture>("travelling", 4, pool);
        for (unsigned k = 0; k < number; ++k) {
            const picture about{320, 200, k};
            if (send) {
                auto block = pool.acquire(4 * about.width * about.height, std::chrono::seconds(10));
                std::memset(block.data().data(), static_cast<int>(k % 256), block.data().size());
                travelling.send(std::move(block), about, std::chrono::seconds(10));
                continue;
            }
            auto got = travelling.receive(
                std::chrono::seconds(10));  // the block belongs to this process until the end of the scope
            std::printf("picture %u, %ux%u, at %llu, begins with %u\n", got.about.number, got.about.width,
                        got.about.height, static_cast<unsigned long long>(got.block.offset()),
                        static_cast<unsigned>(got.block.data()[0]));
        }
        return 0;
    } catch (const carousel::error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return e.code();
    }
}
