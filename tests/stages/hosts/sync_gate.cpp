// Preloaded into the processes of a run (LD_PRELOAD): sync(2) returns once no file CAROUSEL_TEST_SYNC_GATE
// exists, and appends a byte to CAROUSEL_TEST_SYNC_COUNT. So a test sees which process waits for sync(2).
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

extern "C" void sync() noexcept {
    const char* const gate = std::getenv("CAROUSEL_TEST_SYNC_GATE");
    while (gate != nullptr && ::access(gate, F_OK) == 0) ::usleep(2000);
    const char* const count = std::getenv("CAROUSEL_TEST_SYNC_COUNT");
    if (count == nullptr) return;
    const int fd = ::open(count, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return;
    if (::write(fd, "s", 1) != 1) std::abort();
    ::close(fd);
}
