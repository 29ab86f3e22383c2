#pragma once
// Every message that a process sends to a supervisor over DIR/control.sock: {"type": "...", fields}, one
// struct per type, listed here. Answers have "ok": with true, the fields of the struct named at the message;
// with false, why it was refused (request_message.hpp).

#include <variant>

#include "control/mapped_ring.hpp"
#include "control/request_message.hpp"
#include "control/stage_message.hpp"

namespace carousel::run {

/// Of a connection that stays open; request_message.hpp has those of a client, which sends one request.
using connection_message = std::variant<hello_message, ready_message, return_message, back_message,
                                        left_message, owner_message, tap_request>;

}  // namespace carousel::run
