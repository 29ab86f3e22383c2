// Lesson 15: claims about tenants.
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson tenants_lesson{
    .number = 15,
    .name = "tenants",
    .title = "tenants: what a process can and can't access of another user's process",
    .question =
        "A process of another user wants your process's memfd. It knows the process id and the descriptor's "
        "number. Which way works?",
    .answers = {"/proc/PID/fd/N", "pidfd_getfd()", "None, unless your process sends the descriptor",
                "None at all"},
    .decided_by = "a memfd of another user",
    .space = true,
    .programs = {{"carousel-lab-tenants", "cpu", 60}, {"carousel-lab-tenants-cuda", "gpu", 60}},
    .plot = {"how many of ten ways to the secret worked",
             "",
             "roads",
             {{"the same user", "same.open"}, {"another user", "other.open"}}},
    .claims = {
        {"processes of one user",
         "Processes are isolated from each other.",
         "cpu",
         false,
         {{{equal("same.proc_fd", 1), equal("same.signal", 1), equal("same.environ", 1),
            equal("same.vm_readv", 1)},
           "Not if they have the same user: the process opened the memfd by /proc/PID/fd, read the memory "
           "(process_vm_readv) and the environment of the other process, and was permitted to kill it. This "
           "isolation protects against crashes, not against malice."},
          {{equal("same.proc_fd", 1), equal("same.signal", 1), equal("same.vm_readv", 0)},
           "The process opened the memfd by /proc/PID/fd and was permitted to kill the other process, but "
           "process_vm_readv was refused (Yama's ptrace_scope, or a container's filter). This isolation "
           "protects against crashes, not against malice."},
          {{equal("same.proc_fd", 0), equal("same.signal", 1)},
           "The process was permitted to kill the other process, but /proc/PID/fd was refused, because "
           "something here hides processes of the same user from each other."}}},
        {"a memfd of another user",
         "A handle is only a number.",
         "two_users",
         false,
         {{{equal("other.proc_fd", 0), equal("other.vm_readv", 0), equal("other.pidfd_getfd", 0),
            equal("other.signal", 0), equal("other.given", 1)},
           "/proc/PID/fd, process_vm_readv, pidfd_getfd and a signal were refused. The descriptor that its "
           "owner sent worked, because any process that has the descriptor can use the memory, whatever the "
           "user of the process.",
           2},
          {{equal("other.proc_fd", 0), equal("other.pidfd_getfd", 0), equal("other.given", 0)},
           "Every way was refused, even a descriptor that was sent.",
           3}}},
        {"shared memory with a name",
         "Use a key that both processes know.",
         "two_users",
         false,
         {{{equal("other.sysv_private", 0), equal("other.sysv_public", 1)},
           "Another user's process that knew the key was refused with mode 0600 and could read with 0644, "
           "because only the mode protects the memory."}}},
        {"POSIX shared memory of another user",
         "",
         "two_users_and_shm",
         false,
         {{{equal("other.shm_private", 0), equal("other.shm_public", 1)},
           "The result is the same: memory with mode 0600 was refused, memory with 0644 could be read. Both "
           "names can be listed in /dev/shm."}}},
        {"a socket in the abstract namespace",
         "",
         "two_users",
         false,
         {{{equal("other.connects", 1), equal("other.known", 1)},
           "Any process may connect. The listener must check the peer's user with SO_PEERCRED, which was "
           "correct here."},
          {{equal("other.connects", 0)}, "The connection was refused."}}},
        {"a space of another user",
         "",
         "two_users",
         false,
         {{{equal("other.space", 0)},
           "It could not be opened, because its socket is in a folder that only its user can access (0700), "
           "and its memory is passed only over that socket."}}},
        {"what can still be seen",
         "",
         "two_users",
         false,
         {{{equal("other.cmdline", 1), equal("other.environ", 0)},
           "The command line can be read, but the environment can't, so do not put secrets on a command "
           "line."},
          {{equal("other.cmdline", 0), equal("other.environ", 0)},
           "Neither can be read, because /proc is mounted with hidepid here."}}},
        {"new memory",
         "",
         "cpu",
         false,
         {{{equal("same.fresh", 0)},
           "64 MiB of new pages were all 0, because the kernel clears pages that it allocates."}}},
        {"the owner is killed",
         "",
         "two_users",
         true,
         {{{equal("other.dead_sysv", 1)},
           "Memory with a name and mode 0644 still exists, and another user can read it. The memfd is gone."},
          {{equal("other.dead_sysv", 0)}, "Nothing remained to be read."}}},
        {"CUDA: another user's handle",
         "Any process that has a handle can open it.",
         "two_gpu_users",
         false,
         {{{equal("cuda.handle.code", 0), equal("cuda.handle.whole", 1)},
           "The handle could be opened, so a process of another user that knew the 64 bytes could read the "
           "memory. Keep handles as secret as the memory that they refer to."},
          {{above("cuda.handle.code", 0)}, "It was refused with error {cuda.handle.code}."}}},
        {"CUDA: another user's descriptor",
         "",
         "two_gpu_users",
         false,
         {{{equal("cuda.descriptor.whole", 1)},
           "VMM memory whose descriptor was sent can be read, like a memfd."},
          {{equal("cuda.descriptor.whole", 0)}, "It could not be imported."}}},
        {"CUDA: what can still be seen",
         "",
         "two_gpu_users",
         false,
         {{{above("cuda.seen.share", 0.9)},
           "cudaMemGetInfo reports the free memory to every process, so the {cuda.mib} MiB that the other "
           "process allocated and freed were visible."},
          {{below("cuda.seen.share", 0.9001)},
           "The allocations of the other process were not visible in cudaMemGetInfo."}}},
        {"CUDA: what a dead tenant leaves in memory",
         "",
         "two_gpu_users",
         true,
         {{{equal("cuda.leftover.words", 0), above("cuda.leftover.share", 0.5)},
           "The other user's process allocated all but {cuda.leftover.rest_mib} MiB of the free memory and "
           "checked every word: none was from the dead process. The driver clears memory before another "
           "process gets it."},
          {{above("cuda.leftover.words", 0)},
           "{cuda.leftover.words} words of the dead process were found, so clear secrets before you free "
           "their memory."}}},
        {"CUDA: what a process finds in memory that it freed",
         "",
         "gpu",
         false,
         {{{above("cuda.own.words", 0)},
           "In memory freed and allocated again by the same process, {cuda.own.words} words were unchanged, "
           "because cudaMalloc does not clear memory that the process had before."},
          {{equal("cuda.own.words", 0)}, "No old contents of the process's freed memory were found."}}},
    }};

}  // namespace carousel::lab
