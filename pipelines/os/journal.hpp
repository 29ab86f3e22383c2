#pragma once
// Entries of systemd's journal, by its native protocol: one datagram per entry, so that stage, pid and level
// are fields (journalctl STAGE=fragment -p warning). Never blocks; one thread.

#include <string>
#include <string_view>

#include "core/log.hpp"
#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::supervisor {

struct journal_entry {
    log::level level = log::level::info;
    std::string_view stage;     ///< "fragment", or "carousel": the supervisor
    i32 pid = 0;                ///< of the stage's process
    std::string_view pipeline;  ///< its name
    std::string_view message;
};

/// True if `fd` is the journal's stream, which means that the variable JOURNAL_STREAM contains the device and
/// inode of `fd`.
[[nodiscard]] bool is_journal(int fd) noexcept;
/// Returns the datagram that contains the entry.
[[nodiscard]] std::string journal_datagram(const journal_entry& e);

inline constexpr const char* journal_socket = "/run/systemd/journal/socket";

class journal {
public:
    /// Makes a journal that is not open; send() then returns false.
    journal() = default;
    /// Connects to the socket at that path; the journal is not open if there is no such socket.
    explicit journal(std::string_view path);
    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(socket_); }
    /// Returns false if the journal does not accept the entry now.
    bool send(const journal_entry& e) const;

private:
    shm::unique_fd socket_;
};

}  // namespace carousel::supervisor
