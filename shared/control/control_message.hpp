#pragma once
// Every message that a process sends to a supervisor over DIR/control.sock: {"type": "...", fields}, one
// struct per type, listed here. Every answer has the key "ok". If the value is true, the answer also has the
// fields of an answer struct, which the comment of the message names. If the value is false, the answer has
// the reason for the refusal (request_message.hpp).

#include <variant>

#include "control/debug_message.hpp"
#include "control/mapped_ring.hpp"
#include "control/request_message.hpp"
#include "control/stage_message.hpp"

namespace carousel::run {

/// The messages on connections that stay open; request_message.hpp has the messages of a client, which sends
/// one request per connection.
using connection_message =
    std::variant<hello_message, ready_message, return_message, back_message, detached_message, left_message,
                 owner_message, tap_request, debug_request>;

}  // namespace carousel::run
