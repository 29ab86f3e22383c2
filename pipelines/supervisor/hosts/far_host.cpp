#include "supervisor/hosts/far_host.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/poll_until.hpp"
#include "core/read_file.hpp"
#include "core/secret_file.hpp"
#include "os/pending_signal.hpp"
#include "run/answer_message.hpp"
#include "run/directory.hpp"
#include "supervisor/hosts/first_kept.hpp"
#include "supervisor/plan/run_identity.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
constexpr std::size_t most_strangers = 8;
constexpr std::size_t most_lines = 2000;
constexpr std::size_t most_line_bytes = 1U << 20U;  ///< in a message, where they may be six times as long
constexpr u64 lines_every_ns = 200 * ns_per_ms;
constexpr auto too_long_an_answer =
    "the answer is longer than a message between two hosts may be: ask for less";
constexpr auto unreadable_near =
    "the near host says what this version does not know, and its connection is closed: use the same build on "
    "both hosts";

shm::unique_fd listen_on(const host_spec& h) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<u16>(h.port));
    shm::unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) throw config_error("making a socket for the near host: " + errno_text(errno));
    const int on = 1;
    (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::inet_pton(AF_INET, h.address.c_str(), &at.sin_addr);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        ::listen(fd.get(), 8) != 0) {
        const int why = errno;
        if (why == EADDRNOTAVAIL)
            throw config_error(
                fmt::format("host {}: {} is no address of this machine: `carousel host --as {}` is "
                            "for the machine that has it",
                            h.name, h.address, h.name));
        throw config_error(
            fmt::format("host {}: port {} of {} can't be listened on: {}; another port: port = N in "
                        "[hosts.{}]",
                        h.name, h.port, h.address, errno_text(why), h.name));
    }
    return fd;
}

}  // namespace

far_host::far_host(hosts_plan plan, const host_spec& self) : plan_(std::move(plan)), self_(self) {
    if (!hosts::can_seal())
        throw config_error(
            "`carousel host` takes a build with UCX and libcrypto: apt-get install libucx-dev libssl-dev, "
            "and "
            "build again");
    first_ = plan_.first;
    token_ = read_secret(plan_.token, "the token of this pipeline's hosts");
    listener_ = listen_on(self_);
}

std::string far_host::near_run_file() const { return run::run_folder(part_name()) + "/near-run"; }

// What the near run was called, for a supervisor that takes this part over. It is there before the first
// stage of this part is started, so there is none to take over without it, unless it could not be written.
void far_host::keep_near_run(const std::string& id) const {
    try {
        run::write_whole_file(near_run_file(), id);
    } catch (const error& e) {
        if (orders_ == nullptr) return;  // it is written again when the run is there, or the run is over
        orders_->say(
            fmt::format("warning: {}: a supervisor that takes this part over would not know whose "
                        "frames it has, and refuse the near host",
                        e.what()));
    }
}

std::string far_host::kept_near_run() const { return read_file(near_run_file()).value_or(""); }

void far_host::accept_all(u64 now) {
    for (;;) {
        shm::unique_fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd) break;
        // Whoever knows the token proves it within milliseconds: the oldest of those who have not makes room.
        if (strangers_.size() >= most_strangers) strangers_.erase(strangers_.begin());
        strangers_.push_back(
            std::make_unique<sealed_stream>(std::move(fd), sealed_stream::side::far, token_, now));
    }
    for (auto at = strangers_.begin(); at != strangers_.end();) {
        const std::vector<json> first = (*at)->advance(now);
        if (!(*at)->open()) {
            at = (*at)->closed() ? strangers_.erase(at) : std::next(at);
            continue;
        }
        near_ = std::move(*at);  // the newest that knows the token
        at = strangers_.erase(at);
        compared_ = told_ = false;
        take_all(first);
    }
}

// Who knows the token, and says what can't be read, is of another version: that costs it its connection.
void far_host::take_all(const std::vector<json>& said) {
    try {
        for (const json& m : said) take(m);
    } catch (const json::exception&) {
        near_.reset();
        if (!std::exchange(told_unreadable_, true)) say_here(unreadable_near);
    }
}

void far_host::say_here(const std::string& text) {
    if (orders_ != nullptr)
        orders_->say(text);
    else if (out_ != nullptr)
        out_->line(text);
}

/// Said here and, seen from there, to the near host.
void far_host::refuse_near(const std::string& here, const std::string& there) {
    near_->send({{"refused", there}});
    if (here == last_refusal_) return;
    last_refusal_ = here;
    say_here(here);
}

// A run that begins does so with one frame on all hosts: the near host's. One that runs already says nothing
// of it here: then this host is the heir of one that was lost, and begins where --first says, or else where
// the near host does (take()).
bool far_host::take_first(const json& hello) {
    if (begun_ || !hello.contains("first")) return true;
    const u64 theirs = hello["first"].get<u64>();
    if (plan_.first != 0 && plan_.first != theirs) {
        refuse_near(
            fmt::format("the near host's run begins with frame {}, and --first {} was given here: leave "
                        "it out, or give both the same",
                        theirs, plan_.first),
            fmt::format("it was given --first {}, and this run begins with frame {}: leave it out there, "
                        "or give both the same",
                        plan_.first, theirs));
        return false;
    }
    first_ = theirs;
    return true;
}

void far_host::take_hello(const json& hello) {
    const std::string meant = hello.value("host", "?");
    if (meant != self_.name)
        return refuse_near(
            fmt::format("a near host looks for host {} at this address, and this is {}", meant, self_.name),
            fmt::format("host {} is there, not {}", self_.name, meant));
    const json plan = hello.value("plan", json::object());
    if (const std::string what = difference(plan, plan_.plan); !what.empty())
        return refuse_near(fmt::format("the near host's plan is another: {}", what),
                           fmt::format("its plan is another: {}", difference(plan_.plan, plan)));
    const std::string run = hello.value("run", "");
    if (begun_ && near_run_.empty())  // another run's frames would be dropped here as repeats, in silence
        return refuse_near(
            fmt::format("the near host was refused: {} does not say which run's frames this part has, so it "
                        "may be another one's: end both (Ctrl-C), and begin again",
                        near_run_file()),
            "it has been taken over, and does not know whether its frames are of this run: end it there, too "
            "(Ctrl-C), and begin again");
    if (begun_ && run != near_run_) {
        near_->send({{"later", "it ends what it had of an earlier run"}});
        superseded_ = true;
        if (orders_ != nullptr) orders_->end_at_once("the near host has begun another run");
        return;
    }
    if (!take_first(hello)) return;
    near_run_ = run;
    if (begun_) keep_near_run(run);
    compared_ = true;
    told_unreadable_ = false;
    near_->send({{"hello", {{"plan", plan_.plan}, {"running", begun_}}}});
    if (end_asked_) near_->send({{"interrupted", "drain"}});  // it may not have heard it, or be another one
}

void far_host::take(const json& m) {
    if (m.contains("hello") && m["hello"].is_object()) return take_hello(m["hello"]);
    if (m.contains("ping")) {
        near_->send({{"pong", {{"sent", m["ping"]}, {"here", now_ns()}}}});
        return;
    }
    if (m.contains("bye")) {
        bye_ = true;
        return;
    }
    if (m.contains("over") && !begun_) last_refusal_ = "the near host's run is over";
    if (m.contains("begin") && compared_) {
        if (!begun_ && m.contains("first") && plan_.first == 0) first_ = m["first"].get<u64>();
        begun_ = true;
        return;
    }
    if (!compared_) return;
    if (m.contains("end")) {
        early_end_ = m["end"].get<std::string>();
        return carry_out_end();
    }
    if (m.contains("stream_end")) {
        early_stream_end_ = {m["stream_end"].at("stage").get<std::string>(),
                             m["stream_end"].at("at").get<u64>()};
        return carry_out_end();
    }
    if (orders_ == nullptr) return;
    if (m.contains("first_kept_for")) return tell_first_kept(m);
    if (!m.contains("ask")) return;
    const json answer = orders_->carry_out_for(m["ask"]);
    if (m.value("id", 0) == 0)
        near_->send({{"ps", answer}});
    else if (!near_->send({{"answer", answer}, {"id", m["id"]}}))
        near_->send(
            {{"answer", run::to_json(run::refused(exit_code::output, too_long_an_answer))}, {"id", m["id"]}});
}

// A host that this one sends to has lost its part. Null: it can't be told.
void far_host::tell_first_kept(const json& m) {
    json answer{{"host", m.at("first_kept_for")}, {"id", m.at("id")}, {"first_kept", nullptr}};
    try {
        const auto first = first_kept(plan_, run::run_folder(part_name()), self_.name,
                                      m["first_kept_for"].get<std::string>());
        if (first) answer["first_kept"] = *first;
    } catch (const error& e) {
        orders_->say(e.what());
    }
    near_->send(answer);
}

// It may have come together with `begin`.
void far_host::carry_out_end() {
    if (orders_ == nullptr) return;
    if (const auto told = std::exchange(early_stream_end_, std::nullopt); told)
        orders_->end_the_stream(told->first, told->second, "the near host knows that its sender is done");
    if (early_end_.empty()) return;
    if (std::exchange(early_end_, "") == "at once") return orders_->end_at_once("the near host ends the run");
    orders_->end_the_run("the near host ends the run: what is begun is delivered");
}

void far_host::look(u64 now) {
    accept_all(now);
    if (near_) take_all(near_->advance(now));
    if (!near_) return;
    if (near_->closed() || now > near_->heard_ns() + silence_ns) near_.reset();
}

void far_host::gather(console& out, const std::string&) {
    out_ = &out;
    begun_ = false;
    orders_ = nullptr;
    early_end_.clear();
    early_stream_end_.reset();
    out.line(fmt::format("host {} of {} waits for `carousel run` of the same file ({} port {})", self_.name,
                         plan_.name, self_.address, self_.port));
    u64 until = now_ns() + launch_patience_ns;
    while (!begun_) {
        look(now_ns());
        if (near_is_there()) until = now_ns() + launch_patience_ns;
        if (launched_ && (!last_refusal_.empty() || now_ns() > until))
            throw config_error(last_refusal_.empty() ? "nobody has come for whom this host was started"
                                                     : last_refusal_);
        out.flush();
        if (const int signal = pending_signal(); signal != 0) throw interrupted_early{signal};
        pollfd p[2] = {{listener_.get(), POLLIN, 0}, {near_ ? near_->fd() : -1, POLLIN, 0}};
        (void)poll_until(p, 2, now_ns() + 20 * ns_per_ms);
    }
}

void far_host::attend(event_loop&, host_orders& to, const std::string& run_id) {
    orders_ = &to;
    run_id_ = run_id;
    if (begun_) {
        keep_near_run(near_run_);
    } else {  // a run that was taken over
        near_run_ = kept_near_run();
        begun_ = true;
    }
    lost_ns_ = now_ns();
    end_asked_ = waits_for_end_ = alone_ = false;
    lines_ = std::make_unique<log_reader>(run::run_folder(part_name()) + "/logs");
    unsent_.clear();
}

void far_host::leave() noexcept { orders_ = nullptr; }

void far_host::tick(u64 now) {
    look(now);
    if (orders_ == nullptr) return;
    carry_out_end();
    send_lines(now);
    if (near_is_there()) {
        if (told_lost_) orders_->say("the near host is back");
        told_lost_ = false;
        was_there_ = true;
        lost_ns_ = now;
    } else if (!told_lost_ && now > lost_ns_ + ns_per_s) {
        told_lost_ = true;
        orders_->say(was_there_ ? "the near host is lost: the rings to and from it wait"
                                : "the near host is not there yet");
    }
    if (waits_for_end_ && nobody_gives_the_end(now)) {
        waits_for_end_ = false;
        alone_ = true;
        orders_->end_the_run("the near host is lost, and gives no end: what has come from it is delivered");
    }
}

// They lie in this host's runtime directory as well; the coordinator gets a copy.
void far_host::send_lines(u64 now) {
    if (!lines_ || now < lines_ns_) return;
    lines_ns_ = now + lines_every_ns;
    for (log_record& r : lines_->take()) unsent_.push_back(std::move(r));
    for (; unsent_.size() > most_lines; ++lines_dropped_) unsent_.pop_front();
    if (!near_is_there() || unsent_.empty()) return;
    json all = json::array();
    std::size_t bytes = 0;
    if (const u64 dropped = std::exchange(lines_dropped_, 0); dropped > 0)
        all.push_back({{"stage", "carousel"},
                       {"pid", ::getpid()},
                       {"line", fmt::format("{} older lines are in this host's own log alone", dropped)}});
    for (const log_record& r : unsent_) {
        all.push_back({{"stage", r.stage}, {"pid", r.pid}, {"line", r.line}});
        if ((bytes += r.line.size()) < most_line_bytes) continue;
        near_->send({{"log", std::exchange(all, json::array())}});
        bytes = 0;
    }
    unsent_.clear();
    if (!all.empty()) near_->send({{"log", all}});
}

u64 far_host::ask(const std::string& host, const json&, std::string& why) {
    why = fmt::format("stages of host {} are asked for on the near host, where `carousel run` is", host);
    return 0;
}

}  // namespace carousel::supervisor
