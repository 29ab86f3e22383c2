#pragma once
// Errors. Set-up code throws one of the classes below. The main function of a process catches it, and exits
// with the documented exit code. The hot path is noexcept and returns enums. A programming error aborts
// (CAROUSEL_ASSERT). A message states what failed, on which object, the cause, and what to do.

#include <cerrno>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/clock.hpp"

namespace carousel {

/// Exit codes of every Carousel program. 128 + n means "ended by signal n". Codes from 70 on are used by
/// stages.
namespace exit_code {
inline constexpr int ok = 0;
inline constexpr int stage_failed = 1;  ///< a required stage failed permanently
inline constexpr int usage = 2;         ///< the command line, pipeline file or configuration is invalid
inline constexpr int no_device = 3;     ///< the device or display does not exist or cannot be used
/// every frame arrived, but some frames were abandoned and arrived as tombstones, without a picture
inline constexpr int frames_abandoned = 4;
inline constexpr int gpu_fault = 70;        ///< a stage's GPU work failed (illegal address, trap, ...)
inline constexpr int revoked = 71;          ///< a stage found that its epoch was raised: a successor occupies
                                            ///< its seat
inline constexpr int supervisor_gone = 72;  ///< the supervisor died, and no other supervisor adopted the run
                                            ///< in time
inline constexpr int stage_exception = 73;  ///< an exception escaped a stage's own code
inline constexpr int shared_memory = 74;    ///< the control block or ring memory can't be used
inline constexpr int output = 75;  ///< pictures or the ledger can't be written (disk full, no permission)
/// a stage returns its frames so that another instance can process them; not counted as a failure
inline constexpr int gave_back = 76;
}  // namespace exit_code

/// Base of all errors that a Carousel program itself reports.
class error : public std::runtime_error {
public:
    error(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
    [[nodiscard]] int code() const noexcept { return code_; }

private:
    int code_;
};

/// Invalid configuration or usage, which the user can correct. The process ends with exit_code::usage and is
/// not restarted.
class config_error : public error {
public:
    explicit config_error(const std::string& message) : error(exit_code::usage, message) {}
};

/// Shared memory, sockets or file descriptors between processes can't be used.
class shm_error : public error {
public:
    explicit shm_error(const std::string& message) : error(exit_code::shared_memory, message) {}
};

/// A device is missing or its set-up fails.
class device_error : public error {
public:
    explicit device_error(const std::string& message) : error(exit_code::no_device, message) {}
};

/// A CUDA call failed while the device was in use; status is the CUDA error's number.
class cuda_error : public error {
public:
    cuda_error(int status, const std::string& message)
        : error(exit_code::gpu_fault, message), status_(status) {}
    [[nodiscard]] int status() const noexcept { return status_; }

private:
    int status_;
};

/// Pictures, ledgers or reports can't be written.
class output_error : public error {
public:
    explicit output_error(const std::string& message) : error(exit_code::output, message) {}
};

/// The text of an error number, as strerror() returns it.
[[nodiscard]] std::string errno_text(int error_number);

/// Prints the failed assertion and aborts. Never returns.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

/// Returns the message that a main function prints for an exception that is not a carousel::error. The
/// message names an operating-system error or exhausted memory; it reports any other exception as a bug in
/// Carousel.
[[nodiscard]] std::string unexpected_text(const std::exception& e);

// A full disk is not a fault of the frame being written: code that finds the disk full throws
// disk_full_error, and the runner of a stage waits until there is room (stages/runner/running_clock.hpp).

/// Time for which a run still waits for disk space after its end has been requested. A stage stops retrying
/// its writes after that time; its supervisor ends the stage one second later, so that no signal interrupts a
/// write.
inline constexpr u64 full_disk_patience_ns = 3 * ns_per_s;

/// No space on the disk, or the user's quota is exhausted.
class disk_full_error : public output_error {
public:
    disk_full_error(std::string path, const std::string& message)
        : output_error(message), path_(std::move(path)) {}
    [[nodiscard]] const std::string& path() const noexcept {
        return path_;
    }  ///< the path that could not be written

private:
    std::string path_;
};

[[nodiscard]] inline bool is_disk_full(int error_number) noexcept {
    return error_number == ENOSPC || error_number == EDQUOT;
}

/// Throws disk_full_error or output_error, depending on the error number.
[[noreturn]] inline void throw_output_error(const std::string& path, int error_number,
                                            const std::string& message) {
    if (is_disk_full(error_number)) throw disk_full_error(path, message);
    throw output_error(message);
}

}  // namespace carousel

/// Aborts if the condition is false, which is a programming error. Checked in every build.
#define CAROUSEL_ASSERT(condition)                       \
    (static_cast<bool>(condition) ? static_cast<void>(0) \
                                  : ::carousel::assertion_failed(#condition, __FILE__, __LINE__))
