// Lesson 15: claims about tenants.
#include "lab/lessons/list.hpp"

namespace carousel::lab {

const lesson tenants_lesson{
    .number = 15,
    .name = "tenants",
    .title = "tenants: what one user's process can and can't see of another's",
    .question =
        "A process of another user wants the memfd of yours. It knows the process id and the descriptor's "
        "number. Which road leads there?",
    .answers = {"/proc/PID/fd/N", "pidfd_getfd()", "None, unless your process sends the descriptor",
                "None at all"},
    .decided_by = "a memfd of another user",
    .space = true,
    .programs = {{"carousel-lab-tenants", "cpu", 60}, {"carousel-lab-tenants-cuda", "gpu", 60}},
    .plot = {"roads to the secret that were open, of ten",
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
           "Not of one user: it opened the memfd by /proc/PID/fd, read the other's memory by "
           "process_vm_readv and "
           "its environment, and might kill it. Isolation here is against crashes, not against malice."},
          {{equal("same.proc_fd", 1), equal("same.signal", 1), equal("same.vm_readv", 0)},
           "It opened the memfd by /proc/PID/fd and might kill the other; process_vm_readv was refused "
           "(Yama's "
           "ptrace_scope, or a container's filter). Isolation here is against crashes, not against malice."},
          {{equal("same.proc_fd", 0), equal("same.signal", 1)},
           "It might kill the other, and /proc/PID/fd was refused: something here hides processes of one "
           "user "
           "from each other."}}},
        {"a memfd of another user",
         "A handle is only a number.",
         "two_users",
         false,
         {{{equal("other.proc_fd", 0), equal("other.vm_readv", 0), equal("other.pidfd_getfd", 0),
            equal("other.signal", 0), equal("other.given", 1)},
           "/proc/PID/fd, process_vm_readv, pidfd_getfd and a signal were refused. The descriptor that its "
           "owner "
           "sent worked: who has it has the memory, whoever he is.",
           2},
          {{equal("other.proc_fd", 0), equal("other.pidfd_getfd", 0), equal("other.given", 0)},
           "Every road was refused, a descriptor that was sent included.",
           3}}},
        {"shared memory with a name",
         "Use a key that both know.",
         "two_users",
         false,
         {{{equal("other.sysv_private", 0), equal("other.sysv_public", 1)},
           "0600 was refused and 0644 read, by a stranger who knew the key: its mode is all that guards "
           "it."}}},
        {"POSIX shared memory of another user",
         "",
         "two_users_and_shm",
         false,
         {{{equal("other.shm_private", 0), equal("other.shm_public", 1)},
           "The same: 0600 was refused, 0644 read. Both names can be listed in /dev/shm."}}},
        {"a socket in the abstract namespace",
         "",
         "two_users",
         false,
         {{{equal("other.connects", 1), equal("other.known", 1)},
           "Anybody may connect. Whoever listens must ask SO_PEERCRED who it is; here it said so rightly."},
          {{equal("other.connects", 0)}, "The connection was refused."}}},
        {"a space of another user",
         "",
         "two_users",
         false,
         {{{equal("other.space", 0)},
           "It couldn't be opened: its socket lies in a folder of its user's alone (0700), and its memory "
           "goes "
           "over that socket only."}}},
        {"what can be seen all the same",
         "",
         "two_users",
         false,
         {{{equal("other.cmdline", 1), equal("other.environ", 0)},
           "The command line can be read, the environment can't: no secret belongs on a command line."},
          {{equal("other.cmdline", 0), equal("other.environ", 0)},
           "Neither: /proc is mounted with hidepid here."}}},
        {"new memory",
         "",
         "cpu",
         false,
         {{{equal("same.fresh", 0)},
           "64 MiB of fresh pages were all 0: the kernel clears what it gives away."}}},
        {"the owner is killed",
         "",
         "two_users",
         true,
         {{{equal("other.dead_sysv", 1)},
           "What had a name and the mode 0644 lies there still, and the stranger reads it. The memfd is "
           "gone."},
          {{equal("other.dead_sysv", 0)}, "Nothing was left to read."}}},
        {"CUDA: another user's handle",
         "A handle opens for whoever has it.",
         "two_gpu_users",
         false,
         {{{equal("cuda.handle.code", 0), equal("cuda.handle.whole", 1)},
           "It opened: a process of another user that had learnt the 64 bytes read the memory. Keep handles "
           "as "
           "secret as what they name."},
          {{above("cuda.handle.code", 0)}, "It was refused with error {cuda.handle.code}."}}},
        {"CUDA: another user's descriptor",
         "",
         "two_gpu_users",
         false,
         {{{equal("cuda.descriptor.whole", 1)},
           "VMM memory whose descriptor was sent can be read, as a memfd can."},
          {{equal("cuda.descriptor.whole", 0)}, "It could not be imported."}}},
        {"CUDA: what can be seen all the same",
         "",
         "two_gpu_users",
         false,
         {{{above("cuda.seen.share", 0.9)},
           "cudaMemGetInfo tells everybody how much is free: the {cuda.mib} MiB that the other one took and "
           "gave "
           "back were seen."},
          {{below("cuda.seen.share", 0.9001)},
           "What the other one has was not to be seen in cudaMemGetInfo."}}},
        {"CUDA: what a dead tenant leaves in memory",
         "",
         "two_gpu_users",
         true,
         {{{equal("cuda.leftover.words", 0), above("cuda.leftover.share", 0.5)},
           "The stranger took all but {cuda.leftover.rest_mib} MiB of what was free and looked at every "
           "word: none "
           "was the dead one's. The driver clears what it gives to another process."},
          {{above("cuda.leftover.words", 0)},
           "{cuda.leftover.words} words of the dead one's were found: clear what is secret before it is "
           "freed."}}},
        {"CUDA: what a process leaves for itself",
         "",
         "gpu",
         false,
         {{{above("cuda.own.words", 0)},
           "Freed and taken again by the same process, {cuda.own.words} words were as before: cudaMalloc "
           "clears "
           "nothing for whoever had it."},
          {{equal("cuda.own.words", 0)}, "Nothing was found of what the process had freed before."}}},
    }};

}  // namespace carousel::lab
