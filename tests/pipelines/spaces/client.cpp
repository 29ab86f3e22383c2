// A client of a space for the tests of the command line: SPACE. It takes a permit, a block, a leased element
// and a task, prints "ready", and for each line that it reads releases its permit and takes it again, which
// it prints.
#include <carousel/ipc.hpp>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

using std::chrono_literals::operator""s;

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    try {
        auto space = carousel::ipc::open(argv[1], {.wait_s = 20});
        auto turn = space.semaphore("turn", 4);
        auto frames = space.pool("frames", 1 << 20);
        auto samples = space.queue<unsigned>("samples", 16);
        auto tiles = space.work_queue<unsigned>("tiles", 16, 3);
        auto permit = turn.acquire(10s);
        const auto block = frames.acquire(8192, 10s);
        samples.push(1, 10s);
        const auto element = samples.lease(10s);
        (void)tiles.submit(1, 10s);
        const auto task = tiles.claim(10s);
        std::cout << "ready" << std::endl;
        for (std::string line; std::getline(std::cin, line);) {
            permit.release();
            permit = turn.acquire(10s);
            std::cout << "again" << std::endl;
        }
        return 0;
    } catch (const carousel::error& e) {
        std::cout << "error: " << e.what() << std::endl;
        return e.code();
    }
}
