#pragma once
// Messages between the supervisors of two hosts, over a sealed_stream: {"type": "...", fields}. Each side
// reads only the variant of the messages that it can receive. A message of another type or with other fields
// ends the connection.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/described.hpp"

namespace carousel::supervisor::host_message {

/// drain: the frames in flight are delivered before the end.
enum class end_kind : u8 { drain, at_once };
BOOST_DESCRIBE_ENUM(end_kind, drain, at_once)

// ---- coordinator to host
struct hello {
    static constexpr const char* type = "hello";
    std::string host = "?", pipeline, run;
    nlohmann::json plan = nlohmann::json::object();
    std::optional<u64> first;  ///< the first frame of the run; it is sent until the run has begun on every
                               ///< host
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(hello, (), (host, pipeline, run, plan, first))
struct ping {
    static constexpr const char* type = "ping";
    u64 sent = 0;
};
BOOST_DESCRIBE_STRUCT(ping, (), (sent))
/// The partition begins. `first`, the first frame of the host's partition, is sent only to a host that
/// replaces a lost host.
struct begin {
    static constexpr const char* type = "begin";
    std::optional<u64> first;
};
BOOST_DESCRIBE_STRUCT(begin, (), (first))
/// The host's result is saved, so the host may exit.
struct bye {
    static constexpr const char* type = "bye";
};
BOOST_DESCRIBE_STRUCT(bye, (), ())
/// The run has ended, and this host has no partition of it.
struct over {
    static constexpr const char* type = "over";
};
BOOST_DESCRIBE_STRUCT(over, (), ())
struct end {
    static constexpr const char* type = "end";
    end_kind how = end_kind::drain;
};
BOOST_DESCRIBE_STRUCT(end, (), (how))
/// The stream of frames that `stage` receives has ended before frame `at`.
struct stream_end {
    static constexpr const char* type = "stream_end";
    std::string stage;
    u64 at = 0;
};
BOOST_DESCRIBE_STRUCT(stream_end, (), (stage, at))
/// A request of a client (control/request_message.hpp). If `id` is 0, the receiver answers with a `ps`
/// message.
struct ask {
    static constexpr const char* type = "ask";
    nlohmann::json request;
    u64 id = 0;
};
BOOST_DESCRIBE_STRUCT(ask, (), (request, id))
/// Requests the number of the first frame that the receiver of this message still keeps for `host`, which has
/// lost its partition.
struct ask_first_kept {
    static constexpr const char* type = "ask_first_kept";
    std::string host;
    u64 id = 0;
};
BOOST_DESCRIBE_STRUCT(ask_first_kept, (), (host, id))

using to_host = std::variant<hello, ping, begin, bye, over, end, stream_end, ask, ask_first_kept>;

// ---- host to coordinator
/// Answer to a hello whose plan is the same as the host's plan.
struct agreed {
    static constexpr const char* type = "agreed";
    nlohmann::json plan = nlohmann::json::object();
    bool running = false;
};
BOOST_DESCRIBE_STRUCT(agreed, (), (plan, running))
/// Answer to a hello: this host does not take part.
struct refused {
    static constexpr const char* type = "refused";
    std::string why;
};
BOOST_DESCRIBE_STRUCT(refused, (), (why))
/// Answer to a hello that is refused now; a later hello can succeed.
struct later {
    static constexpr const char* type = "later";
    std::string why;
};
BOOST_DESCRIBE_STRUCT(later, (), (why))
struct pong {
    static constexpr const char* type = "pong";
    u64 sent = 0, here = 0;  ///< sent: the time from the ping; here: the time of this host
};
BOOST_DESCRIBE_STRUCT(pong, (), (sent, here))
struct ps {
    static constexpr const char* type = "ps";
    nlohmann::json answer;
};
BOOST_DESCRIBE_STRUCT(ps, (), (answer))
struct answer {
    static constexpr const char* type = "answer";
    nlohmann::json reply;
    u64 id = 0;  ///< of the `ask`
};
BOOST_DESCRIBE_STRUCT(answer, (), (reply, id))
struct first_kept {
    static constexpr const char* type = "first_kept";
    std::string host;
    u64 id = 0;                ///< of the `ask_first_kept`
    std::optional<u64> first;  ///< empty: unknown
};
BOOST_DESCRIBE_STRUCT(first_kept, (), (host, id, first))
struct log_line {
    std::string stage = "?";
    i32 pid = 0;
    std::string line;
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(log_line, (), (stage, pid, line))
struct log {
    static constexpr const char* type = "log";
    std::vector<log_line> lines;
};
BOOST_DESCRIBE_STRUCT(log, (), (lines))
/// A user has interrupted the run on this host.
struct interrupted {
    static constexpr const char* type = "interrupted";
    end_kind how = end_kind::drain;
};
BOOST_DESCRIBE_STRUCT(interrupted, (), (how))
/// The partition has ended: {"code", "report", "line", "alone"}.
struct ended {
    static constexpr const char* type = "ended";
    nlohmann::json outcome;
};
BOOST_DESCRIBE_STRUCT(ended, (), (outcome))

using to_coordinator =
    std::variant<agreed, refused, later, pong, ps, answer, first_kept, log, interrupted, ended>;

}  // namespace carousel::supervisor::host_message
