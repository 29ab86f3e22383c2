#pragma once
// A second process for the conformance suite: this executable again, by exec (a forked child of a process
// that uses CUDA can't). Parent and child exchange JSON over a socket, with fds for memory.

#include <string>
#include <vector>

#include "core/json.hpp"
#include "device/backend.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::test {

inline constexpr int child_socket = 10;

class child {
public:
    /// Starts `program` (this executable when empty) with the socket's other end on fd 10. `role` names what
    /// the child does.
    explicit child(const std::string& role, const std::string& program = {},
                   std::vector<std::string> arguments = {});
    ~child();  ///< kills it if it still lives
    child(const child&) = delete;
    child& operator=(const child&) = delete;

    void send(const nlohmann::json& what, const std::vector<int>& fds = {});
    /// The next message, within 30 s. Throws std::runtime_error if the child has ended or does not answer.
    [[nodiscard]] nlohmann::json receive(std::vector<shm::unique_fd>* fds = nullptr);
    nlohmann::json ask(const nlohmann::json& what, const std::vector<int>& fds = {}) {
        send(what, fds);
        return receive();
    }
    void hang_up() { socket_.reset(); }
    void kill();                    ///< SIGKILL, and waits for its end
    [[nodiscard]] int exit_code();  ///< waits (30 s at most); 128 + n after signal n; -1: still alive
    [[nodiscard]] bool alive();

private:
    int pid_ = -1;
    int status_ = -1;
    shm::unique_fd socket_;
};

/// The folder of this build's programs.
[[nodiscard]] std::string program_next_to_test(const std::string& name);

[[nodiscard]] nlohmann::json to_json(const device::memory_handle& handle);
[[nodiscard]] device::memory_handle handle_from(const nlohmann::json& j, int fd);
/// For memory in pieces, with all its descriptors.
[[nodiscard]] device::memory_handle handle_from(const nlohmann::json& j,
                                                const std::vector<shm::unique_fd>& fds);
template <std::size_t N>
[[nodiscard]] nlohmann::json bytes_to_json(const std::array<std::byte, N>& bytes) {
    nlohmann::json j = nlohmann::json::array();
    for (const std::byte b : bytes) j.push_back(static_cast<int>(b));
    return j;
}
template <std::size_t N>
[[nodiscard]] std::array<std::byte, N> bytes_from(const nlohmann::json& j) {
    std::array<std::byte, N> bytes{};
    for (std::size_t i = 0; i < N; ++i) bytes[i] = static_cast<std::byte>(j.at(i).get<int>());
    return bytes;
}

}  // namespace carousel::test
