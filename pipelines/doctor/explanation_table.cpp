// The table of `carousel explain`.
#include <array>

#include "doctor/explanations.hpp"

namespace carousel::supervisor {
namespace {

constexpr const char* exit_kind = "exit code";
constexpr const char* cuda_kind = "CUDA error";
constexpr const char* job_kind = "job word";
constexpr const char* slot_kind = "slot word";
constexpr const char* lease_kind = "lease word";
constexpr const char* seat_kind = "state of a stage";
constexpr const char* death_kind = "cause of death";
constexpr const char* process_kind = "state of a process";
constexpr const char* fault_kind = "injected fault";
constexpr const char* limit_kind = "what limits a run";
constexpr const char* log_kind = "word of a log or report";
constexpr const char* client_kind = "state of a space's client";
constexpr const char* space_kind = "word of a space";

constexpr auto explanations = std::to_array<explanation>({
    {exit_kind, "0", "Every frame was delivered exactly once, complete and intact.",
     "The run ended because of --frames, the end of the stream, or Ctrl-C.", "Nothing."},
    {exit_kind, "1", "A required stage failed permanently, or a frame was lost, repeated or torn.",
     "A stage died repeatedly without delivering a frame, or its restart policy is \"never\".",
     "The last lines name the stage and its last output. See `carousel logs STAGE`, then `carousel run "
     "--report FILE`."},
    {exit_kind, "2", "The command line, the pipeline file or a stage's settings are invalid.",
     "Nothing was started. The message names file, line and column, or the option.",
     "Correct it; `carousel validate FILE` checks a file without starting it."},
    {exit_kind, "3", "The device or display does not exist or can't be used.",
     "No driver, no GPU of that number, a GPU without IPC support, or no display for a viewer.",
     "`carousel doctor` lists what is available; --device cpu runs everywhere."},
    {exit_kind, "4",
     "Every frame was delivered, but more frames were given up than allow_dead_letters permits.",
     "A stage died on the same frame max_attempts times, so the frame continued as a tombstone, without a "
     "picture.",
     "The report's dead_letters name frame, stage and cause; --allow-dead-letters N accepts them."},
    {exit_kind, "5", "Every frame was delivered, but stages have begun again with a fresh state.",
     "The memory of a state was lost, or the run began with --first N, and there was no checkpoint.",
     "The report's state_lost_at has the frames; set checkpoint_every, or allow_state_loss = true."},
    {exit_kind, "70", "A stage's work on the GPU failed: an illegal address, a trap, a launch failure.",
     "A kernel of one stage failed. The stage's process is replaced, its frames go to the successor, and no "
     "other stage is affected.",
     "`carousel run --set 'STAGE.prefix=compute-sanitizer'` names the kernel and the line."},
    {exit_kind, "71", "A stage found that a successor owns its seat, and exited without changing anything.",
     "The stage was stopped, hung, or was under a debugger beyond its deadline, and resumed late.",
     "Nothing: this is the normal end of a late process. If it happens to a healthy stage, raise "
     "frame_timeout_ms."},
    {exit_kind, "72", "A stage outlived its supervisor, and no supervisor took the run over in time.",
     "The supervisor was killed, and `carousel run FILE` was not started within supervisor_grace_s.",
     "Start the same file again within that time, and the stages continue under the new supervisor. After "
     "that time, `carousel ps --all` shows what is known of the lost run, and `carousel logs --lost` shows "
     "its log lines."},
    {exit_kind, "73",
     "A stage's own code threw an exception, or wrote beyond the stage's output slot, into the canary.",
     "process(), prepare() or finish() threw an exception, and the log has its text. For a canary, the log "
     "has the ring and the offset.",
     "Fix the stage. A frame on which it throws each time is given up after max_attempts."},
    {exit_kind, "74",
     "Shared memory can't be used: the control block, a ring, or a socket between processes.",
     "/dev/shm is full, a limit on processes, memory or descriptors blocked a start for 8 s, or a program "
     "comes from a build with another layout.",
     "The message has the error and the limit. Check `df /dev/shm`, pids.max and `ulimit -n`, `-u`, `-v`, "
     "`-s`; `carousel clean` removes leftovers."},
    {exit_kind, "75", "Pictures, a ledger or a report can't be written, or a ledger can't be read.",
     "The disk is full, permission is missing, or a FIFO has no reader.",
     "The run is paused until there is room: free some space, or write no pictures (--out '')."},
    {exit_kind, "76", "A process has returned its frames, so that other instances of its stage process them.",
     "The process (carousel-remote) represents instances on another host, which is unreachable, has "
     "restarted or is late.",
     "Nothing: no attempt is counted, and its successor takes frames again when that host is back. The log "
     "has the cause."},
    {exit_kind, "77", "A stage could not start because it got no thread, process, descriptor or memory.",
     "A limit: pids.max of a control group, `ulimit -u`, `ulimit -v`.",
     "Nothing, if the shortage is temporary: no attempt is counted, and the start is retried. After 8 s the "
     "run ends with code 74. The log has the limit."},
    {exit_kind, "78", "The GPU is lost, or a process can't use it.",
     "The GPU was removed or has an uncorrectable memory error, or its driver does not answer. With fallback "
     "= \"cpu\" the stages continue on the CPU.",
     "See nvidia-smi and dmesg. When the GPU works again, `carousel device cuda:0` returns the stages to "
     "it."},
    {exit_kind, "130", "Ended by Ctrl-C (128 + signal 2).",
     "After one Ctrl-C the frames in flight are delivered; after a second one the run does not wait for "
     "them.",
     "Nothing."},
    {exit_kind, "137", "Ended by SIGKILL (128 + signal 9).",
     "A user killed the process, or the kernel did because memory ran out. If the kernel killed a stage, the "
     "log names that cause.",
     "A stage is restarted automatically. To replace a supervisor, start the file again."},
    {exit_kind, "139", "Ended by SIGSEGV (128 + signal 11): an invalid memory access on the CPU.",
     "A fault in the stage's own code; its frames go to its successor. The log has the address and a "
     "backtrace (`carousel logs STAGE`).",
     "Replay the frame under a debugger if it was saved (`carousel replay`), or attach one to the running "
     "stage: `carousel debug STAGE`. Such a stage has no deadline."},

    {exit_kind, "129", "Ended by SIGHUP (128 + signal 1).",
     "The terminal was closed before the last frame of --frames; each frame that was begun is delivered.",
     "`carousel up -d` runs in the background; `nohup carousel run` ignores the signal."},
    {exit_kind, "131", "Ended by SIGQUIT (128 + signal 3).", "A user pressed Ctrl-\\.", "Nothing."},
    {exit_kind, "132", "Ended by SIGILL (128 + signal 4): an instruction that this processor does not have.",
     "A program that was built for another processor.",
     "Build it on this machine, or for an older processor."},
    {exit_kind, "134", "Ended by SIGABRT (128 + signal 6): abort(), an assertion, or a broken heap.",
     "A fault in the stage's own code; its frames go to its successor.",
     "`carousel logs STAGE` shows its last output."},
    {exit_kind, "135", "Ended by SIGBUS (128 + signal 7): access to a mapping that no memory backs.",
     "A file or shared memory was truncated, or was read before it had a size.",
     "`carousel lab order` shows such a case; Carousel's own memory is sealed against truncation."},
    {exit_kind, "136", "Ended by SIGFPE (128 + signal 8): a division of integers by zero.",
     "A fault in the stage's own code; its frames go to its successor.",
     "`carousel logs STAGE`, then a debugger."},
    {exit_kind, "141", "Ended by SIGPIPE (128 + signal 13): the process wrote to a pipe that has no reader.",
     "The output went to a program that has ended, for example head.", "Nothing."},
    {exit_kind, "143", "Ended by SIGTERM (128 + signal 15).",
     "A `kill` or a batch system ended the run before the last frame of --frames; each frame that was begun "
     "is delivered.",
     "The last lines and the report (ended_early) have the number N of frames. --first N continues from "
     "there."},

    {cuda_kind, "cudaErrorInvalidResourceHandle",
     "The handle of memory or of an event can't be opened, or a stream or event belongs to another context.",
     "The exporter of a legacy handle has died. Processes that opened the handle before can still use the "
     "memory, but other processes can no longer open the handle.",
     "Use memory by descriptor (memory = \"vmm\", the default): it exists as long as any process holds it."},
    {cuda_kind, "cudaErrorDeviceUninitialized",
     "In Carousel: an IPC handle was opened in the process that exported it.",
     "A program opened its own handle, for example in a test. The importer must be another process.",
     "Use the existing pointer. For a second mapping in one process, use VMM memory and map it twice."},
    {cuda_kind, "cudaErrorInvalidValue",
     "If cudaIpcGetMemHandle failed, this memory can't be exported that way. If a memset or copy failed, the "
     "memory is mapped read-only.",
     "Managed memory, memory of cudaMallocAsync, host memory and VMM memory have no legacy handle.",
     "Export memory of cudaMalloc, or export VMM memory by its descriptor."},
    {cuda_kind, "cudaErrorIllegalAddress",
     "A kernel accessed memory that is not mapped, or wrote to memory that is mapped read-only.",
     "With one context per stage, only the faulty stage gets the error (exit code 70). Under MPS, every "
     "client of that GPU gets it, whichever client caused it.",
     "Run the stage under compute-sanitizer. Under MPS the domain is renewed, and the frames in progress "
     "are processed again."},
    {cuda_kind, "cudaErrorLaunchFailure",
     "A trap, a misaligned access or a fault of the hardware ended a kernel.",
     "The causes are the same as for cudaErrorIllegalAddress. Under MPS, every client gets this error after "
     "another client's trap.",
     "`carousel logs` shows which stage died first. Run that stage under compute-sanitizer."},
    {cuda_kind, "cudaErrorInitializationError",
     "CUDA was used in the child of a process that had used CUDA before the fork.",
     "A stage forked, for example by a Python pool with the start method fork.",
     "Start workers by exec or spawn, or fork before the first CUDA call."},
    {cuda_kind, "cudaErrorMapBufferObjectFailed",
     "Memory or an event of another process could not be mapped.",
     "The exporter has ended, is in another MPS domain, or uses a GPU that this process can't see.",
     "For an event, nothing: the frames that it marks are committed by their owner only. For memory, see "
     "`carousel doctor`."},
    {cuda_kind, "cudaErrorDevicesUnavailable", "The GPU refuses new contexts.",
     "The compute mode is exclusive, or an MPS server has faulted but has not ended yet.",
     "The supervisor renews its own domain. Otherwise check `nvidia-smi -q -d COMPUTE`, or end the other MPS "
     "daemon."},
    {cuda_kind, "cudaErrorMemoryAllocation", "Out of memory on the GPU.",
     "The rings, the assets and one context per stage (about half a GB each) need more memory than is free.",
     "`carousel run FILE --dry-run` lists the memory needed. Use a smaller size, window or in_flight, or "
     "isolation = \"mps\"."},
    {cuda_kind, "cudaErrorNotReady",
     "The work before an event is not complete. If the process that recorded the event has died, the work "
     "never will be complete.",
     "Carousel never waits for another process's event: it queries the event, and the job word is "
     "authoritative.",
     "In your own program, never let a stream wait for an event of a process that may die."},
    {cuda_kind, "cudaErrorNoDevice", "CUDA sees no GPU.",
     "There is no GPU, CUDA_VISIBLE_DEVICES is empty, or the container has no GPU.",
     "Run `carousel doctor`, or use --device cpu."},
    {cuda_kind, "cudaErrorInsufficientDriver", "The driver is older than the CUDA runtime in these programs.",
     "The programs were built with a newer toolkit than the driver supports.",
     "Update the driver, or build with an older toolkit (12.0 or newer)."},

    {job_kind, "IDLE", "The job is free; no process has started this version of it.",
     "The stage is between two frames.", "Nothing."},
    {job_kind, "OPEN", "A frame is claimed, and the stage is in process() or has not begun the frame.",
     "If the process dies in this state, the frame returns to the queue, because it was not submitted.",
     "Nothing."},
    {job_kind, "SUBMITTED",
     "All work is enqueued, and its event is recorded, but the device may still write.",
     "If the process dies in this state, a consumer that has observed the event as complete may commit the "
     "frame. If there is none, the frame is processed again.",
     "Nothing."},
    {job_kind, "COMMITTED", "The frame is committed: no process death can undo it.",
     "The supervisor, or any process that finds the word, completes the owner's remaining steps.",
     "Nothing."},
    {job_kind, "ABORTED", "The supervisor has taken the frame from a dead, hung or replaced process.",
     "The frames that the process had leased return to the queue. The slot that it was writing is "
     "quarantined until the process's fence.",
     "Nothing."},
    {job_kind, "DAMAGED",
     "One bit of the word is wrong because of a wild write. No process acts on the word.",
     "The supervisor repairs the word from other words, or rebuilds the block; `carousel logs` names the "
     "word.",
     "To find the stage that wrote there, run stages under compute-sanitizer or with the asan preset."},
    {slot_kind, "FREE", "A free buffer.", "The buffer waits for a producer.", "Nothing."},
    {slot_kind, "FILL", "A buffer that a job writes.", "No process reads it before the job is COMMITTED.",
     "Nothing."},
    {slot_kind, "READY", "A buffer with a committed frame.",
     "The buffer stays READY until every blocking reader has released it.",
     "A ring full of READY slots has a slow reader: `carousel ps` names the bottleneck."},
    {slot_kind, "QUARANTINED", "A buffer that device work of a dead process may still be writing.",
     "The buffer becomes free after the fence, when the process and its context are gone.",
     "Nothing: spare buffers are used meanwhile. If many buffers stay quarantined, a process can't be ended "
     "(state D)."},
    {slot_kind, "DAMAGED",
     "One bit of the word is wrong because of a wild write. No process acts on the word.",
     "The supervisor repairs the word from other words, or rebuilds the block; `carousel logs` names the "
     "word.",
     "To find the stage that wrote there, run stages under compute-sanitizer or with the asan preset."},
    {lease_kind, "WAIT", "No reader has taken this frame from the ring yet.",
     "The frame waits for a reader of that group.", "Nothing."},
    {lease_kind, "LEASED", "A reader's job works on this frame.", "The job's word has the progress.",
     "Nothing."},
    {lease_kind, "DONE", "That group has finished with the frame.",
     "When all blocking groups have finished, the slot is freed.", "Nothing."},
    {lease_kind, "SKIPPED", "A `latest` reader skipped this frame.",
     "A viewer, or a stage with group = \"latest\", takes the newest frame.", "Nothing."},
    {lease_kind, "DAMAGED",
     "One bit of the word is wrong because of a wild write. No process acts on the word.",
     "The supervisor repairs the word from other words, or rebuilds the block; `carousel logs` names the "
     "word.",
     "To find the stage that wrote there, run stages under compute-sanitizer or with the asan preset."},

    {seat_kind, "starting", "Its process runs and has not delivered a frame yet.",
     "Loading a GPU context, kernels and assets takes time; frames wait in the ring meanwhile.",
     "Nothing. After 30 s the process counts as hung and is replaced."},
    {seat_kind, "running", "Its process is running.",
     "`carousel ps` shows how busy it is, and the bottleneck.", "Nothing."},
    {seat_kind, "stopping", "Its process was asked to exit, and has not exited yet.",
     "`carousel down`, `carousel restart`, or the end of the run.",
     "Nothing: a process that does not exit is killed automatically."},
    {seat_kind, "stopped", "`carousel stop` has paused the stage.",
     "Its deadlines are suspended, and the pipeline waits. If its process dies, the successor is also "
     "paused.",
     "`carousel cont STAGE`."},
    {seat_kind, "backoff", "The stage died without delivering a frame, and waits before its next start.",
     "Each such death increases the delay. The frames wait in the ring.",
     "`carousel logs STAGE` shows the cause of death."},
    {seat_kind, "failed",
     "The stage is not started again, because of its number of deaths, its exit code or its restart policy.",
     "If a required stage fails, the run ends with code 1; if an optional one fails, the run continues.",
     "See `carousel logs STAGE`; after the repair, run `carousel up STAGE`."},
    {seat_kind, "down", "A user ended the stage by `carousel down STAGE`.",
     "The ring fills, and its producers wait.", "`carousel up STAGE`."},
    {seat_kind, "vacant", "A port (run = \"port\") that no program has opened.",
     "No program has opened the port yet, or the program that had opened it has left or died. The pipeline "
     "waits.",
     "Start the program: it calls carousel::open(RUN).writer(PORT) or .reader(PORT); in Python, "
     "carousel.open."},
    {seat_kind, "done", "The stage has finished: it has processed every frame of the run.",
     "The run is about to end.", "Nothing."},
    {seat_kind, "standby", "A process that has completed prepare() and waits for a seat.",
     "The stage's table has standby = true.", "Nothing."},

    {process_kind, "absent", "No process uses this entry.",
     "The seat's process has ended and its successor has not started.", "Nothing."},
    {process_kind, "dying", "The process's words are aborted, but it has not ended yet.",
     "The process is between its death (or deadline) and its fence.",
     "Nothing: with a GPU context it takes about a tenth of a second."},
    {process_kind, "dead", "The process has ended, and none of its work can write any more.",
     "The process has passed its fence; the entry has not been reused yet.", "Nothing."},

    {death_kind, "deadline missed", "The supervisor killed it because a frame exceeded its deadline.",
     "The process hung, was stopped by a signal, or took longer than frame_timeout_ms.",
     "See `carousel logs STAGE`; if the stage is healthy but slow, raise frame_timeout_ms."},
    {death_kind, "not ready in time", "The supervisor killed it because it did not finish its start in time.",
     "prepare() hangs or takes longer than the 30 s limit.", "`carousel logs STAGE` shows how far it got."},
    {death_kind, "unknown", "The cause of its end is not known yet, or could not be observed.",
     "The operating system reports the end of a process with a GPU context about a tenth of a second later, "
     "and never reports it for the child of another supervisor.",
     "`carousel logs STAGE` shows its last output."},
    {death_kind, "killed", "A signal from another process ended it.",
     "`carousel kill`, `carousel restart`, a user's kill, or the kernel when memory ran out.",
     "Nothing. If memory ran out, the log names the out-of-memory killer and the limit."},
    {death_kind, "restarted", "It was ended so that a successor could start.", "`carousel restart STAGE`.",
     "Nothing: its frames go to its successor."},
    {death_kind, "down", "It was ended, and no successor is started.", "`carousel down STAGE`.",
     "`carousel up STAGE` starts it again."},
    {death_kind, "with its MPS domain", "Another process broke the MPS domain that it shared.",
     "Under MPS the fault of one client ends every client of that GPU.",
     "`carousel logs` shows which stage died first; isolation = \"process\" gives each stage its own "
     "context."},
    {death_kind, "moved into or out of its MPS domain",
     "The supervisor ended it to restart its stage in the MPS domain or in its own GPU context.",
     "A fault of the domain does not identify the stage at fault, so the stages that had work in the domain "
     "are run alone, one by one.",
     "Nothing: its frames go to its successor. `carousel logs` shows which stage faulted while "
     "it ran alone."},

    {fault_kind, "hang", "The stage never finished its next frame (injected).",
     "`carousel inject` or `carousel chaos`.",
     "Nothing: the hang is detected after frame_timeout_ms and the process is replaced."},
    {fault_kind, "gpu-fault", "A kernel accessed an illegal address (injected).",
     "`carousel inject` or `carousel chaos`, for stages on a GPU.",
     "Nothing: the process ends with exit code 70 and is replaced."},
    {fault_kind, "gpu-lost", "Each call of the stage to its GPU failed, as if the GPU were gone (injected).",
     "`carousel inject` or `carousel chaos`, for stages on a GPU.",
     "Nothing: the process ends with exit code 78 and is replaced. With fallback = \"cpu\" its stage, or the "
     "run, continues on the CPU until `carousel device cuda:0`."},
    {fault_kind, "exit", "The stage ended itself during a frame (injected).",
     "`carousel inject` or `carousel chaos`.", "Nothing: its frames go to its successor."},
    {fault_kind, "abort", "The stage called abort() during a frame (injected).",
     "`carousel inject` or `carousel chaos`.", "Nothing: its frames go to its successor."},
    {fault_kind, "scribble-input", "The stage wrote to its read-only input (injected).",
     "`carousel inject` or `carousel chaos`.",
     "Nothing: only the stage that wrote ends (with its MPS domain, if any); the frame stays intact for "
     "all readers."},
    {fault_kind, "overrun-output",
     "The stage wrote beyond its output slot, into the gap or canary after it (injected).",
     "`carousel inject` or `carousel chaos`.",
     "Nothing: only the stage that wrote ends (after a write into a gap also its MPS domain, if any); its "
     "successor processes the frame."},
    {fault_kind, "scribble-control",
     "The stage wrote to the control block directly, bypassing the ring's functions (injected).",
     "`carousel inject` or `carousel chaos`.",
     "Nothing: only the stage that wrote ends, and no word of the run changes."},
    {fault_kind, "throw", "The stage's code threw an exception during a frame (injected).",
     "`carousel inject` or `carousel chaos`.",
     "Nothing: the process logs the exception and ends; its frames go to its successor."},

    {limit_kind, "stage", "One stage is always busy, and the others wait for it.",
     "`carousel ps` and the viewer name the stage.",
     "Add instances of the stage, use a smaller size, or reduce its work."},
    {limit_kind, "pace", "The source limits the rate.", "--fps, or the rate of a camera.", "Nothing."},
    {limit_kind, "paused", "`carousel stop` has paused a stage.", "The rings upstream of it are full.",
     "`carousel cont STAGE`."},
    {limit_kind, "none", "Nothing limits the run at the moment.", "The run is starting, ending or idle.",
     "Nothing."},
    {limit_kind, "unknown", "There is not enough data to name a bottleneck.",
     "The run is in its first second.", "Check again later."},

    {log_kind, "lost", "A frame that no sink has committed.",
     "It is counted from the sinks' ledgers, not from the ring's words.",
     "More than 0 is a bug in Carousel: keep the report and the run's runtime directory, and report the "
     "bug."},
    {log_kind, "repeated", "A frame that a sink has committed twice.",
     "It is counted from the ledgers' marks.",
     "More than 0 is a bug in Carousel: keep the report, and report the bug."},
    {log_kind, "torn",
     "A buffer changed while it was read; the device detected the change by the buffer's status word.",
     "A wild write of a stage, or a bug in Carousel.",
     "Run the stages that use that ring under compute-sanitizer."},
    {log_kind, "given up",
     "A frame on which a stage has died max_attempts times; it continues as a tombstone.",
     "The sinks' ledgers record the frame; a stage receives it only with wants_tombstones.",
     "The report's dead_letters have frame, stage and cause; `carousel replay --dead-letter N` runs the "
     "stage on that frame."},
    {log_kind, "tombstone",
     "A frame without a payload: it was given up after max_attempts, by this stage or upstream.",
     "The runner records the frame; finish() of a stage receives it only with wants_tombstones.",
     "See `given up`."},
    {log_kind, "dead letter", "See `given up`.",
     "Each dead letter has an entry in the report; its frame is kept in the run's runtime directory.",
     "--allow-dead-letters N accepts N of them."},
    {log_kind, "from_capture_ms", "The latency of frames, from their capture until a sink commits them.",
     "Measured if a source sets the capture time of its frames; end_to_end_ms starts when the source accepts "
     "the frame.",
     "If it is much longer than end_to_end_ms, frames wait before they reach the source."},
    {log_kind, "frame headers",
     "Data that frames have in addition to their planes, on pages of the stage that produces the frames.",
     "Another stage made a wild write to these pages. The write ends that other stage, and the frame stays "
     "intact.",
     "Run the stage that wrote under compute-sanitizer or with the asan preset to find the write."},
    {log_kind, "lost run",
     "A run whose supervisor died and which no other supervisor took over within supervisor_grace_s.",
     "Its logs, its deaths and an account from its sinks' ledgers are saved by its last stage, by the next "
     "start of that name, or by `carousel clean`.",
     "`carousel ps --all` lists the newest ten; `carousel logs --lost -p NAME` shows the log lines."},
    {log_kind, "ended early", "The run has delivered fewer frames than --frames gives.",
     "A user or a signal ended it, or its source ended the stream. Each frame that was started is delivered.",
     "The line names the cause; the exit code is 0 only if a user or the source ended the run."},
    {log_kind, "fence", "The moment after which a dead process and its device work can't write any more.",
     "The process's pidfd reports this moment, about a tenth of a second after the death of a process with a "
     "GPU context.",
     "Nothing."},
    {log_kind, "epoch", "The number of a seat's owner; it increases by one with each new owner.",
     "Each word contains the epoch: a write with an older epoch is rejected.", "Nothing."},
    {log_kind, "revoked", "No word of the process can be committed any more.",
     "Revocation precedes the kill, so that a process that is still running can't publish.", "Nothing."},
    {log_kind, "adoption", "A second supervisor takes over a run whose first supervisor was killed.",
     "Run `carousel run FILE` with the same plan within supervisor_grace_s; processes and frames stay.",
     "Nothing."},
    {log_kind, "domain", "The processes that share one MPS server of a run.",
     "A fault of one process ends all of them. The domain is renewed; memory and frames stay.",
     "isolation = \"process\" gives each stage its own context."},
    {log_kind, "suspect", "A frame that was in progress, together with others, when a process died.",
     "Next time, the frame is leased by itself, so that a second death identifies the frame at fault.",
     "Nothing."},
    {log_kind, "stall", "No frame has moved for stall_timeout_ms, and no stage has a known reason to wait.",
     "A word of the control block was damaged by a wild write.",
     "The words are rebuilt automatically from the ledgers. Find the stage at fault: `carousel logs`."},
    {log_kind, "void", "A frame without a payload, also called a tombstone.",
     "The frame was given up, by this stage or upstream.", "See `tombstone`."},

    {client_kind, "attached", "A program has the space open.", "`carousel ps` shows what it holds.",
     "Nothing."},
    {client_kind, "dead",
     "The client's connection has ended, but the client may still be running, so it keeps what it holds.",
     "A program was killed or is ending.",
     "Nothing: after the client's fence, everything that it held is returned."},
    {client_kind, "fenced", "The program has ended; everything that it held is being returned.",
     "For GPU memory a short-lived helper program repairs the words there, which takes some tenths of a "
     "second.",
     "Nothing; if the state persists, run `carousel doctor`."},
    {space_kind, "permits", "The number of permits of a semaphore that this client has.",
     "They are returned when the client ends, at the latest.", "Nothing."},
    {space_kind, "in line", "This client waits for a permit; permits are granted in order of arrival.",
     "All permits of the semaphore are taken.", "`carousel ps` shows which clients have them."},
    {space_kind, "tombs", "Places of a queue that a process had claimed but not filled when it died.",
     "They are counted and freed; no pushed element is lost.", "Nothing."},
    {space_kind, "lost",
     "Elements of a queue that a process had popped when it died; they are not delivered again, because "
     "pop() delivers at most once.",
     "These elements are counted after the fence of that process; it may have acted on them before.",
     "Use lease() and commit() if each element must be delivered."},
    {space_kind, "cells claimed", "Places of a queue that this client is writing.",
     "Later elements wait until these are published or their client has ended.",
     "If a claim persists, the client is stopped or hangs."},
    {space_kind, "cells popping", "Elements of a queue that this client is copying out.",
     "The state lasts only for an instant.", "Nothing."},
    {space_kind, "cells leased", "Elements of a queue that this client has leased but not committed.",
     "They are delivered again if the client dies.",
     "Many long leases fill the queue: commit or return them."},
    {space_kind, "travelling",
     "Blocks of a pool that are in a queue. Each block belongs to a cell of the queue.",
     "The block is between send() and receive().", "Nothing."},
    {space_kind, "dead_letters",
     "Tasks of a work queue that were given up because max_attempts workers died or failed on them.",
     "No worker claims them any more.", "Remove them by take_dead_letter(), and inspect their contents."},
});

}  // namespace

std::span<const explanation> table_of_words() noexcept { return explanations; }

}  // namespace carousel::supervisor
