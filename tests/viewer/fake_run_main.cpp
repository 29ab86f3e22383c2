// A simulated run for SECONDS seconds, to inspect the viewer by hand: viewer_fake_run [SECONDS] [WxH] [NAME].
// XDG_RUNTIME_DIR must be set.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/viewer/fake_run.hpp"

int main(int argc, char** argv) {
    carousel::test::fake_options o;
    if (argc > 2) std::sscanf(argv[2], "%ux%u", &o.width, &o.height);
    if (argc > 3) o.name = argv[3];
    if (std::getenv("XDG_RUNTIME_DIR") == nullptr) return 2;
    carousel::test::fake_run run(o);
    std::this_thread::sleep_for(std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 60));
    std::printf("%llu frames\n", static_cast<unsigned long long>(run.frames()));
    return 0;
}
