// Whole sequences of messages on the supervisor's socket, over several connections: requests of clients,
// messages of stages, ports, viewers and debuggers, in any order, valid except for one change each (a field
// is missing, of another type, nested deeply or large). Input: a program of steps, each a byte that selects
// the step and its parameters (see step()). The messages are made from the descriptions of their structs, so
// a new message is covered when it is listed in its variant.
//
// Holds for every program: a connection gets at most one answer per message, each of them an object that its
// readers read; no descriptor is kept; afterwards a new connection gets the state of every seat.
#include <sys/socket.h>

#include <array>
#include <boost/mp11.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "control/control_message.hpp"
#include "tests/fuzz/answers.hpp"
#include "tests/fuzz/fuzzed_supervisor.hpp"

namespace carousel {
namespace {

using nlohmann::json;
using test::require;

constexpr u32 most_steps = 40, most_waits = 3;
constexpr std::size_t most_bytes = std::size_t{220} << 10U;  ///< above the longest message of the protocol
/// A longer message is sent once in a sequence, because the supervisor takes as long for it as for a hundred
/// short ones.
constexpr std::size_t most_short_bytes = 4096;

constexpr const char* names[] = {"a",  "b",    "b.0",  "b.1", "c",      "",
                                 "no", "b.99", "a.b.", "9",   "a/mesh", "/nonexistent"};
constexpr u64 numbers[] = {0,  1,   2,     3,          4,          7,           63,          64,
                           65, 255, 65535, 0x7FFFFFFF, 0xFFFFFFFF, 1ULL << 32U, 1ULL << 53U, ~0ULL};

json any_value(test::bytes& in) {
    switch (in.number<u8>() % 8) {
        case 0:
            return nullptr;
        case 1:
            return in.number<u8>() % 2 == 0;
        case 2:
            return numbers[in.number<u8>() % std::size(numbers)];
        case 3:
            return -static_cast<i64>(in.number<u32>());
        case 4:
            return 1e300 * in.number<i32>();
        case 5:
            return names[in.number<u8>() % std::size(names)];
        case 6:
            return json::array({in.number<u8>(), "x"});
        default:
            return json::object({{names[in.number<u8>() % std::size(names)], in.number<u8>()}});
    }
}

template <typename T>
void choose_fields(T& to, test::bytes& in);

/// A byte 0 keeps the value.
template <typename F>
void choose(F& field, test::bytes& in) {
    const u8 which = in.number<u8>();
    if (which == 0) return;
    if constexpr (std::is_same_v<F, std::string>)
        field = names[which % std::size(names)];
    else if constexpr (std::is_same_v<F, json>)
        field = any_value(in);
    else if constexpr (std::is_same_v<F, bool>)
        field = !field;
    else if constexpr (std::is_integral_v<F>)
        field = static_cast<F>(numbers[which % std::size(numbers)]);
    else if constexpr (std::is_enum_v<F>)
        field = static_cast<F>(which % 12);
    else if constexpr (described_struct<F>)
        choose_fields(field, in);
}

template <typename T>
void choose_fields(T& to, test::bytes& in) {
    for_each_field<T>([&](auto field) { choose(to.*field.pointer, in); });
}

using every_message = boost::mp11::mp_append<run::connection_message, run::request>;

json make_message(test::bytes& in) {
    const std::size_t kind = in.number<u8>() % boost::mp11::mp_size<every_message>::value;
    return boost::mp11::mp_with_index<boost::mp11::mp_size<every_message>>(kind, [&](auto index) {
        boost::mp11::mp_at<every_message, decltype(index)> message;
        choose_fields(message, in);
        return write_message(message);
    });
}

/// Any number below 65536, and a small one much more often than a large one.
u32 any_count(test::bytes& in) {
    const u32 value = in.number<u16>();
    return value >> value % 16U;
}

/// Changes one place of the message; returns its text.
std::string change(json message, test::bytes& in) {
    const u8 how = in.number<u8>() % 12;
    json* value = &message;
    if (!message.empty()) {
        auto at = message.begin();
        std::advance(at, in.number<u8>() % message.size());
        value = &*at;
        if (how == 1) {
            message.erase(at);
            return message.dump();
        }
    }
    switch (how) {
        case 2:
            *value = any_value(in);
            break;
        case 3:
            for (u8 depth = in.number<u8>(); depth > 0; --depth) {  // moved: a list of values would copy them
                json inner = std::exchange(*value, depth % 2 == 0 ? json::array() : json::object());
                if (depth % 2 == 0)
                    value->push_back(std::move(inner));
                else
                    (*value)["x"] = std::move(inner);
            }
            break;
        case 4: {
            const std::size_t length = std::size_t{1} << in.number<u8>() % 18U;
            *value = std::string(length, static_cast<char>(in.number<u8>() % 95 + 32));
            break;
        }
        case 5:
            *value = json::array();
            for (u32 k = any_count(in); k > 0; --k) value->push_back(k);
            break;
        case 6:
            for (u32 k = any_count(in) % 4096; k > 0; --k) message["key" + std::to_string(k)] = k;
            break;
        default:
            break;
    }
    std::string text = message.dump(-1, ' ', false, json::error_handler_t::replace);
    if (how == 7) text.resize(in.number<u16>() % (text.size() + 1));
    if (how == 8) text += text;
    if (how == 9) text[in.number<u16>() % text.size()] = static_cast<char>(in.number<u8>());
    if (text.size() > most_bytes) text.resize(most_bytes);
    return text;
}

class sequence {
public:
    sequence(supervisor::engine& e, test::connector& other, int spare)
        : engine_(&e), other_(&other), spare_(spare) {}

    void step(test::bytes& in) {
        const u8 what = in.number<u8>();
        line& at = lines_[what / 16U % lines_.size()];
        switch (what % 16) {
            case 0:  // nothing is read any more
                at.reads = false;
                break;
            case 1:
                at = {};
                break;
            case 2:
                if (at.fd) (void)::shutdown(at.fd.get(), in.number<u8>() % 2 == 0 ? SHUT_WR : SHUT_RD);
                break;
            case 3:  // the last message again, without a pause
                for (u8 k = in.number<u8>() % 16; k > 0 && last_.size() <= most_short_bytes; --k)
                    send(at, last_, {});
                break;
            case 4:
                if (waits_++ < most_waits) engine_->turn(25);
                break;
            case 5:  // its predecessor remains unanswered until here
                turn();
                break;
            default: {
                last_ = change(make_message(in), in);
                if (last_.size() > most_short_bytes && std::exchange(sent_long_, true))
                    last_.resize(most_short_bytes);
                send(at, last_, std::vector<int>(what % 16 == 6 ? in.number<u8>() % 4 : 0, spare_));
                if (what % 16 > 7) turn();
            }
        }
    }
    void finish() {
        for (line& at : lines_) at = {};
        turn();
        line last;
        send(last, R"({"type":"ps"})", {});
        for (u32 k = 0; k < 20 && last.answers == 0; ++k) turn(last);
        require(last.answers == 1, "a new connection is answered");
        require(last.answer.value("ok", false), "the state is readable at any time");
        require(run::read_ps(last.answer).stages.size() == engine_->seats().seats.size(),
                "the state lists every seat");
    }

private:
    struct line {
        shm::unique_fd fd;
        bool reads = true;
        u64 sent = 0, answers = 0;
        json answer;
    };
    void send(line& at, const std::string& text, const std::vector<int>& fds) {
        if (!at.fd) {
            at.fd = other_->connect();
            (void)::fcntl(at.fd.get(), F_SETFL, O_NONBLOCK);
        }
        if (shm::send_message(at.fd.get(), text, fds)) ++at.sent;
    }
    void turn() {
        engine_->turn(0);
        engine_->turn(0);
        for (line& at : lines_) read(at);
    }
    void turn(line& at) {
        turn();
        read(at);
    }
    static void read(line& at) {
        shm::message m;
        while (at.fd && at.reads && shm::receive_message(at.fd.get(), m) == shm::receive_status::ok) {
            at.answer = json::parse(m.text, nullptr, false);
            require(at.answer.is_object() && at.answer.contains("ok"), "an answer is an object that has ok");
            test::read_every_answer(at.answer);
            require(++at.answers <= at.sent, "at most one answer per message");
        }
    }

    supervisor::engine* engine_;
    test::connector* other_;
    int spare_;
    std::array<line, 4> lines_;
    std::string last_;
    u32 waits_ = 0;
    bool sent_long_ = false;
};

}  // namespace
}  // namespace carousel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    static test::fuzz_surroundings around;
    {
        test::fuzzed_supervisor run(around.setup, around.out);
        sequence messages(run.engine(), around.other, around.nowhere);
        test::bytes in(data, size);
        for (u32 k = 0; k < most_steps && in.left() > 0; ++k) messages.step(in);
        messages.finish();
    }
    around.check_files();
    return 0;
}
