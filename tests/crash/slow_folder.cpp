// Preloaded into the processes of a run (LD_PRELOAD): while the file CAROUSEL_TEST_SLOW_FOLDER.slow exists,
// each call of the supervisor that lists the folder CAROUSEL_TEST_SLOW_FOLDER, or syncs, renames or removes a
// file in it, waits as on a disk that does not reply. The first such call creates
// CAROUSEL_TEST_SLOW_FOLDER.reached.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

template <typename F>
F* next(const char* name) {
    return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

void wait_for_disk(std::string_view path) {
    const char* const folder = std::getenv("CAROUSEL_TEST_SLOW_FOLDER");
    if (folder == nullptr || path.find(folder) != 0 ||
        std::string_view(program_invocation_short_name) != "carousel")
        return;
    const std::string slow = std::string(folder) + ".slow", reached = std::string(folder) + ".reached";
    for (int k = 0; k < 3000 && ::access(slow.c_str(), F_OK) == 0; ++k) {  // up to 30 s
        if (k == 0) ::close(::open(reached.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        ::usleep(10'000);
    }
}

std::string path_of(int fd) {
    char path[4096];
    const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
    return {path, size > 0 ? static_cast<std::size_t>(size) : 0};
}

}  // namespace

extern "C" {

DIR* opendir(const char* path) {
    static auto* const real = next<decltype(::opendir)>("opendir");
    wait_for_disk(path);
    return real(path);
}
DIR* fdopendir(int fd) {
    static auto* const real = next<decltype(::fdopendir)>("fdopendir");
    wait_for_disk(path_of(fd));
    return real(fd);
}
int fsync(int fd) {
    static auto* const real = next<decltype(::fsync)>("fsync");
    wait_for_disk(path_of(fd));
    return real(fd);
}
int rename(const char* from, const char* to) noexcept {
    static auto* const real = next<decltype(::rename)>("rename");
    wait_for_disk(from);
    return real(from, to);
}
int unlink(const char* path) noexcept {
    static auto* const real = next<decltype(::unlink)>("unlink");
    wait_for_disk(path);
    return real(path);
}

}  // extern "C"
