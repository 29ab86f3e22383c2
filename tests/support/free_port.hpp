#pragma once
// A port of the loopback interface on which no process listens.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/types.hpp"
#include "shm/fd_socket.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

inline u16 free_port() {
    const shm::unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    ::inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    socklen_t length = sizeof at;
    REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &length) == 0);
    return ntohs(at.sin_port);
}

}  // namespace carousel::test
