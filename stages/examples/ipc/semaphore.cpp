// Lets one process at a time work. The other processes wait in a line and get their turns in the order of
// the line: semaphore TURNS
#include <carousel/ipc.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
    const int turns = argc > 1 ? std::atoi(argv[1]) : 10;
    try {
        auto lab = carousel::ipc::open("lab");
        auto turn = lab.semaphore("turn", 1);
        for (int k = 0; k < turns; ++k) {
            const auto held = turn.acquire(std::chrono::seconds(
                10));  // the turn ends at the end of the scope, or when this process dies
            std::printf("process %d has its turn, %u wait\n", ::getpid(), turn.waiting());
            ::usleep(1000);
        }
        return 0;
    } catch (const carousel::error& e) {  // the wait has timed out; the message names the process that has
                                          // the turn
        std::fprintf(stderr, "%s\n", e.what());
        return e.code();
    }
}
