// Opens a CUDA handle in three situations: after a byte was altered, across the namespaces of a container and
// of the host, and under another host name and boot id (on one machine, this is the closest approximation of
// another machine). The parent never touches CUDA.
#include <cuda_runtime.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "../../cuda/program.cuh"

namespace {

using lesson::end_of;
using lesson::start;

constexpr size_t bytes = 2 << 20;
constexpr unsigned magic = 0x5EED5EED;
constexpr const char* boot_id = "/proc/sys/kernel/random/boot_id";

struct shared {
    std::atomic<int> there;
    cudaIpcMemHandle_t handle;
    int code, error;  // code: the CUDA error of the process that opens the handle; error: errno if that
                      // process's environment could not be set up
    bool whole;
    char why[200];
};
shared* common;

bool begin_cuda() { return lesson::begin_cuda(common->why); }
void figure(const std::string& name, double value) {
    std::printf("figure cuda.%s %.6g\n", name.c_str(), value);
}

int exporter() {
    void* at = nullptr;
    if (!begin_cuda() || cudaMalloc(&at, bytes) != cudaSuccess) return 3;
    cudaMemcpy(at, &magic, sizeof magic, cudaMemcpyHostToDevice);
    cudaIpcGetMemHandle(&common->handle, at);
    common->there = 1;
    for (;;) pause();
}
/// Opens the handle and returns the CUDA error code; `whole`: the memory holds the expected word.
int opens(const cudaIpcMemHandle_t& handle, bool& whole) {
    void* at = nullptr;
    unsigned word = 0;
    const int code = cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess);
    whole = code == 0 && cudaMemcpy(&word, at, sizeof word, cudaMemcpyDeviceToHost) == cudaSuccess &&
            word == magic;
    if (code == 0) cudaIpcCloseMemHandle(at);
    (void)cudaGetLastError();
    return code;
}

/// Opens the handle with one byte inverted, for each byte in turn.
int altered() {
    if (!begin_cuda()) return 3;
    unsigned refused = 0, same = 0, other = 0;
    bool whole = false;
    for (size_t k = 0; k < sizeof common->handle; ++k) {
        cudaIpcMemHandle_t h = common->handle;
        h.reserved[k] = static_cast<char>(~h.reserved[k]);
        ++(opens(h, whole) != 0 ? refused : whole ? same : other);
    }
    figure("altered.refused", refused), figure("altered.same", same), figure("altered.other", other);
    figure("altered.after", opens(common->handle, whole) == 0 && whole);  // nothing was damaged
    std::fflush(stdout);
    return 0;
}

int open_there() {
    if (!begin_cuda()) return 1;
    common->code = opens(common->handle, common->whole);
    return 0;
}
/// Enters new namespaces. If this process has no right to create namespaces, it also creates a user
/// namespace, in which it has that right.
bool leave(int namespaces) { return unshare(namespaces) == 0 || unshare(namespaces | CLONE_NEWUSER) == 0; }
bool mounted(const char* what, const char* to, const char* type, unsigned long flags) {
    return mount(what, to, type, flags, nullptr) == 0;
}
/// Gives this process the host name and boot id of another machine.
bool other_names() {
    char pattern[] = "/tmp/carousel-lesson-XXXXXX";
    const int file = mkstemp(pattern);
    const char id[] = "11111111-2222-3333-4444-555555555555\n";
    const bool well = file >= 0 && write(file, id, sizeof id - 1) > 0 && sethostname("elsewhere", 9) == 0 &&
                      mounted("none", "/", nullptr, MS_REC | MS_PRIVATE) &&
                      mounted(pattern, boot_id, nullptr, MS_BIND);
    const int error = errno;
    unlink(pattern);
    close(file);
    errno = error;
    return well;
}
bool own_proc() {
    return mounted("none", "/", nullptr, MS_REC | MS_PRIVATE) && mounted("none", "/proc", "proc", 0);
}
bool own_proc_and_shm() { return own_proc() && mounted("none", "/dev/shm", "tmpfs", 0); }

struct place {
    const char* name;
    int namespaces;
    bool (*prepare)();
};
constexpr place here{"here", 0, nullptr}, ipc{"ipc", CLONE_NEWIPC, nullptr},
    pid{"pid", CLONE_NEWPID | CLONE_NEWNS, own_proc}, net{"net", CLONE_NEWNET, nullptr},
    container{"container", CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS,
              own_proc_and_shm},
    boot{"boot", CLONE_NEWNS | CLONE_NEWUTS, other_names};

/// Runs `body` in the place `p`. If the place cannot be set up, common->error holds the errno.
template <class Body>
int in_place(const place& p, Body body) {
    if (p.namespaces != 0 && !leave(p.namespaces)) {
        common->error = errno;
        return 1;
    }
    const pid_t child = start([&] {  // a new PID namespace applies only to children
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (p.prepare != nullptr && !p.prepare()) {
            common->error = errno;
            return 1;
        }
        return body();
    });
    return end_of(child);
}

/// Opens the handle in the place and prints the figures as `name`; returns false and reports `need` as
/// missing if the place cannot be set up.
bool opened_in(const place& p, const std::string& name, const char* need) {
    common->code = -1, common->error = 0, common->whole = false;
    (void)end_of(start([&] { return in_place(p, open_there); }));
    if (common->error != 0 || common->code < 0) {
        std::printf("missing %s %s: %s\n", need, name.c_str(),
                    common->error != 0 ? std::strerror(common->error) : "CUDA can't be initialised there");
        return false;
    }
    figure(name + ".code", common->code), figure(name + ".whole", common->whole);
    return true;
}

/// Starts an exporter in the other namespace or container; the exporter runs until it is killed. Returns -1
/// if the exporter exported nothing.
pid_t exported_in(const place& p) {
    common->there = 0, common->error = 0;
    const pid_t owner = start([&] { return in_place(p, exporter); });
    for (int k = 0; k < 10'000 && common->there == 0; ++k, usleep(1000))
        if (waitpid(owner, nullptr, WNOHANG) != 0) return -1;
    if (common->there != 0) return owner;
    kill(owner, SIGKILL), waitpid(owner, nullptr, 0);
    return -1;
}
void end_exporter(pid_t owner) {
    kill(owner, SIGKILL);  // the kernel then also kills the owner's child (PR_SET_PDEATHSIG)
    waitpid(owner, nullptr, 0);
}

void namespaces() {
    const char* const need = "gpu_namespaces";
    for (const place* p : {&ipc, &pid, &net, &container})
        if (!opened_in(*p, p->name, need)) return;
}
/// Runs the exporter in a container; opens its handle outside and in another container.
void from_a_container() {
    const char* const need = "gpu_containers";
    const pid_t owner = exported_in(container);
    if (owner < 0) {
        std::printf("missing %s the exporter in the container failed: %s\n", need,
                    std::strerror(common->error));
        return;
    }
    if (opened_in(here, "from_container", need)) (void)opened_in(container, "two_containers", need);
    end_exporter(owner);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-handles-elsewhere-cuda")) return 2;
    common = lesson::shared_memory<shared>();
    const pid_t owner = exported_in(here);
    if (owner < 0) return lesson::no_gpu(common->why);
    const bool well = end_of(start(altered)) == 0;
    namespaces();
    (void)opened_in(boot, "boot", "gpu_boot_id");
    end_exporter(owner);
    from_a_container();
    return well ? 0 : 1;
}
