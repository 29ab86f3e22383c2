#include "viewer/web/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>
#include <chrono>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/secret.hpp"
#include "viewer/web/requests.hpp"
#include "viewer/web/site.hpp"
#include "viewer/web/status.hpp"

namespace carousel::viewer::web {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
constexpr auto patience = std::chrono::seconds(15);
constexpr u32 max_header_bytes = 8 * 1024, max_body_bytes = 4 * 1024;

std::string_view view_of(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::optional<u32> number_in(std::string_view text) {
    u32 out = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
    return failed == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

}  // namespace

site::site(const server_options& o, watcher& w)
    : options(o), run(w), shots(w, o.request, o.fps, o.quality, [this](const pictures::jpeg_ptr& p) {
          boost::asio::post(io, [this, p] {
              const std::set<connection*> now = streams;  // a copy, because offer() may remove a stream
              for (connection* c : now) c->offer(p);
          });
      }) {}

site::~site() {
    asking.join();
    closing = true;
}

bool site::has_stream_of(std::string_view viewer) const noexcept {
    return !viewer.empty() && std::any_of(streams.begin(), streams.end(),
                                          [&](const connection* c) { return c->viewer() == viewer; });
}

connection::connection(site& s, boost::asio::ip::tcp::socket socket) : site_(s), stream_(std::move(socket)) {
    ++site_.connections;
}

connection::~connection() {
    set_incomplete(false);
    end_stream();
    --site_.connections;
}

void connection::set_incomplete(bool incomplete) {
    if (incomplete == incomplete_.has_value()) return;
    if (incomplete) {
        incomplete_ = site_.incomplete.insert(site_.incomplete.end(), this);
    } else {
        site_.incomplete.erase(*incomplete_);
        incomplete_.reset();
    }
}

void connection::close_incomplete() {
    set_incomplete(false);
    error_code ignored;
    stream_.socket().close(ignored);  // this makes the pending read fail, and the failed read releases this
                                      // connection
}

void connection::read() {
    set_incomplete(true);
    parser_.emplace();
    parser_->header_limit(max_header_bytes);
    parser_->body_limit(max_body_bytes);
    stream_.expires_after(patience);
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](error_code failed, std::size_t) {
        self->set_incomplete(false);
        if (!failed) {
            self->on_request();
        } else if (failed == http::error::header_limit || failed == http::error::body_limit) {
            self->keep_ = false;
            self->refuse(failed == http::error::header_limit ? status::request_header_fields_too_large
                                                             : status::payload_too_large,
                         "the request is too long");
        } else if (failed.category() == http::make_error_code(http::error::bad_version).category() &&
                   failed != http::error::end_of_stream && failed != http::error::partial_message) {
            self->keep_ = false;
            self->refuse(status::bad_request, "this is not an HTTP/1.1 request");
        }
    });
}

void connection::on_request() {
    request_ = parser_->release();
    keep_ = request_.keep_alive();
    const std::optional<request_target> target = split_target(view_of(request_.target()));
    if (!target)
        return refuse(status::bad_request, "the request target is neither a path nor an http:// address");
    if (is_well_addressed(*target)) route(target->path, target->query);
}

/// Returns false if the request was refused.
bool connection::is_well_addressed(const request_target& target) {
    const std::size_t hosts = request_.count(http::field::host);
    if (hosts > 1 || (hosts == 0 && request_.version() >= 11)) {
        keep_ = false;
        refuse(status::bad_request,
               hosts > 1 ? "the request has more than one Host" : "an HTTP/1.1 request needs a Host");
        return false;
    }
    const std::string_view host =
        target.authority.empty() ? view_of(request_[http::field::host]) : target.authority;
    if (is_open_to_any_host(target.path) || is_own_host(host, site_.options.hosts)) return true;
    refuse(status::forbidden,
           fmt::format("\"{}\" is not a known name of this machine: use its IP address, or start the web UI "
                       "with --http-host NAME. /metrics, /healthz and /readyz accept any name",
                       host.substr(0, 100)));
    return false;
}

void connection::route(std::string_view path, std::string_view query) {
    const bool reads = request_.method() == http::verb::get || request_.method() == http::verb::head;
    if (path.starts_with("/stages/")) return act(path.substr(8), query);
    if (path.starts_with("/runs/")) return choose(path.substr(6), query);
    if (path == "/parameters" || path.starts_with("/parameters/"))
        return set_parameters(path.substr(11), query);
    if (path == "/picture") return choose_picture(query);
    if (!reads)
        return refuse(status::method_not_allowed,
                      "this path accepts GET; actions are POST /stages/STAGE/ACTION, POST /picture, POST "
                      "/parameters and POST /parameters/reset");
    const u64 now = now_ns();
    if (path == "/") {
        // These headers forbid the dashboard to load resources from another site, and other sites to embed it
        // in a frame (clickjacking).
        respond({status::ok,
                 "text/html; charset=utf-8",
                 dashboard_html(),
                 {{"Content-Security-Policy",
                   "default-src 'none'; img-src 'self' data:; connect-src 'self'; style-src 'unsafe-inline'; "
                   "script-src 'unsafe-inline'; "
                   "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
                  {"Referrer-Policy", "no-referrer"},
                  {"X-Frame-Options", "DENY"}}});
    } else if (path == "/status.json") {
        const picture_status p = site_.shots.status();
        const client_rights rights{same_token(view_of(request_["X-Carousel-Token"]), site_.options.token),
                                   site_.options.read_only};
        const stream_status stream{site_.has_stream_of(query_value(query, "viewer")), site::max_streams};
        respond({status::ok,
                 "application/json",
                 site_.run.with_view([&](const view& v) { return status_json(v, p, stream, rights, now); }),
                 {}});
    } else if (path == "/parameters.json") {
        respond({status::ok,
                 "application/json",
                 site_.run.with_view([](const view& v) { return parameters_json(v); }),
                 {}});
    } else if (path == "/history.json") {
        respond({status::ok,
                 "application/json",
                 site_.run.with_view([&](const view& v) { return history_json(v, now); }),
                 {}});
    } else if (path == "/metrics") {
        respond({status::ok,
                 "text/plain; version=0.0.4; charset=utf-8",
                 site_.run.with_view([&](const view& v) { return metrics_text(v, now); }),
                 {}});
    } else if (path == "/healthz" || path == "/readyz") {
        answer_probe(path == "/healthz" ? health : readiness);
    } else if (path == "/snapshot.png") {
        snapshot();
    } else if (path == "/pixel.json") {
        pixel(query);
    } else if (path == "/stream.mjpg") {
        begin_stream(query);
    } else {
        refuse(status::not_found,
               "unknown path; known are /, /stream.mjpg, /snapshot.png, /pixel.json, /status.json, "
               "/parameters.json, /history.json, /metrics, /healthz and /readyz, "
               "and with POST /picture, /parameters and /parameters/reset");
    }
}

void connection::answer_probe(probe_answer (*probe)(const view&)) {
    const probe_answer a = site_.run.with_view(probe);
    respond(
        {a.ok ? status::ok : status::service_unavailable, "text/plain; charset=utf-8", a.text + "\n", {}});
}

/// Returns false if the request was refused, because it is not a POST request or lacks the token.
bool connection::may_act(std::string_view query) {
    if (request_.method() != http::verb::post) {
        refuse(status::method_not_allowed, "actions are POST requests");
        return false;
    }
    std::string_view given = view_of(request_["X-Carousel-Token"]);
    if (const std::string_view bearer = view_of(request_[http::field::authorization]);
        given.empty() && bearer.starts_with("Bearer "))
        given = bearer.substr(7);
    if (!query_value(query, "token").empty()) {
        refuse(status::bad_request,
               "do not put the token into the address of an action, because addresses are logged: send it in "
               "the header X-Carousel-Token");
        return false;
    }
    if (same_token(given, site_.options.token)) return true;
    refuse(status::forbidden,
           "an action needs the token that was printed when this web UI was started (X-Carousel-Token)");
    return false;
}

// `path`: NAME/watch
void connection::choose(std::string_view path, std::string_view query) {
    if (!may_act(query)) return;
    const auto slash = path.find('/');
    if (slash == std::string_view::npos || path.substr(slash) != "/watch")
        return refuse(status::not_found, "POST /runs/NAME/watch");
    const std::string name(path.substr(0, slash));
    if (!site_.run.choose(name))
        return refuse(status::conflict, fmt::format("no run \"{}\" can be watched", name));
    respond({status::ok,
             "application/json",
             nlohmann::json{{"ok", true}, {"message", "watching " + name}}.dump() + "\n",
             {}});
}

// `path`: STAGE/ACTION. The STAGE of another host is HOST/STAGE; the dashboard sends it as HOST%2FSTAGE.
void connection::act(std::string_view path, std::string_view query) {
    if (!may_act(query)) return;
    const auto slash = path.rfind('/');
    std::string stage(path.substr(0, slash));
    const std::string verb(slash == std::string_view::npos ? "" : path.substr(slash + 1));
    if (const auto written = stage.find("%2F"); written != std::string::npos) stage.replace(written, 3, "/");
    if (verb == "kill") return ask_supervisor(run::kill_request{stage});
    const std::optional<run::seat_order> order = enum_named<run::seat_order>(verb);
    if (!order)
        return refuse(
            status::not_found,
            "POST /stages/STAGE/ACTION: unknown action; expected kill, stop, cont, restart, down or up");
    ask_supervisor(run::seat_request{*order, stage});
}

// `path`: "" or /reset
void connection::set_parameters(std::string_view path, std::string_view query) {
    if (!may_act(query)) return;
    if (path == "/reset") return ask_supervisor(run::set_request{.reset = true});
    if (!path.empty())
        return refuse(status::not_found,
                      "POST /parameters with {\"NAME\": VALUE, ...}, or POST /parameters/reset");
    std::string why;
    const nlohmann::json values = values_in(request_.body(), why);
    if (values.is_null()) return refuse(status::bad_request, why);
    ask_supervisor(run::set_request{values});
}

// Selects the picture for all viewers. No request is sent to the run.
void connection::choose_picture(std::string_view query) {
    if (!may_act(query)) return;
    const auto rings = site_.run.with_view([](const view& v) {
        std::map<std::string, std::string> out = v.other_ring_names;
        for (const telemetry::link_view& l : v.snap.links) out[l.name] = l.name;
        return out;
    });
    std::string why;
    const std::optional<picture_request> request =
        read_picture_request(request_.body(), rings, site_.shots.status().request, why);
    if (!request) return refuse(status::bad_request, why);
    site_.shots.show(*request);
    respond(
        {status::ok, "application/json", nlohmann::json{{"ok", true}, {"message", ""}}.dump() + "\n", {}});
}

void connection::pixel(std::string_view query) {
    const std::optional<u32> x = number_in(query_value(query, "x")), y = number_in(query_value(query, "y"));
    if (!x || !y) return refuse(status::bad_request, "/pixel.json?x=X&y=Y, in pixels of the whole picture");
    stream_.expires_never();
    const bool asked = site_.shots.ask_pixel(*x, *y, [self = shared_from_this()](std::string text) {
        boost::asio::post(self->site_.io, [self, text = std::move(text)]() mutable {
            self->respond({status::ok, "application/json", std::move(text) + "\n", {}});
        });
    });
    if (!asked) refuse(status::too_many_requests, "too many pending requests for a pixel");
}

// Every action that changes the run passes here, so the check for a read-only server is made here only.
void connection::ask_supervisor(run::request what) {
    if (site_.options.read_only && !only_reads(what))
        return refuse(status::forbidden, fmt::format("{}: no action was taken; this web UI is {}",
                                                     run::command_of(what), read_only_text));
    const auto [socket, run_id] = site_.run.with_view([](const view& v) {
        return v.phase == run_phase::running ? std::pair(v.run.socket(), v.run.run_id)
                                             : std::pair<std::string, std::string>();
    });
    const std::shared_ptr<const run::mapped_block> here = site_.run.attached();
    if (socket.empty()) return refuse(status::service_unavailable, "no pipeline is running");
    // The header names the run that the dashboard showed when the user pressed the button; scripts may omit
    // it.
    const std::string_view shown = view_of(request_["X-Carousel-Run"]);
    if (!shown.empty() && shown != run_id)
        return refuse(status::conflict, "no action was taken, because this web UI now watches another run");
    if (site_.actions >= site::max_actions)
        return refuse(status::too_many_requests, "too many actions are waiting for the supervisor's answer");
    ++site_.actions;
    stream_.expires_never();
    boost::asio::post(site_.asking, [self = shared_from_this(), socket = socket, run_id = run_id, here,
                                     c = command{std::move(what)}] {
        const reply r = control_client::ask(socket, run_id, c);
        // Reads the block again, because the last view may be a tenth of a second old.
        const u64 from = std::holds_alternative<run::set_request>(c.what) && here
                             ? telemetry::read_snapshot(here->observed->block()).parameter_from
                             : 0;
        boost::asio::post(self->site_.io, [self, r, from] { self->answer_action(r, from); });
    });
}

void connection::answer_action(const reply& r, u64 from) {
    --site_.actions;
    nlohmann::json text{{"ok", r.ok}, {"message", r.message}};
    if (std::holds_alternative<run::set_request>(r.asked.what))
        text["from"] = from;  // `set` is not logged, because a slider sends ten changes per second
    else
        site_.run.log_event(r.ok ? telemetry::event_kind::info : telemetry::event_kind::warning,
                            fmt::format("web UI: {}: {}", describe(r.asked), r.message));
    respond({r.ok ? status::ok : status::conflict,
             "application/json",
             text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
             {}});
}

void connection::snapshot() {
    stream_.expires_never();
    const bool asked = site_.shots.ask_png([self = shared_from_this()](png_answer a) {
        boost::asio::post(self->site_.io, [self, a = std::move(a)]() mutable {
            if (a.bytes.empty()) return self->refuse(status::service_unavailable, a.problem);
            self->respond(
                {status::ok,
                 "image/png",
                 std::move(a.bytes),
                 {{"X-Carousel-Frame", std::to_string(a.ring_sequence)},
                  {"X-Carousel-Age-Seconds", fmt::format("{:.3f}", static_cast<f64>(a.age_ns) / 1e9)}}});
        });
    });
    if (!asked) refuse(status::too_many_requests, "too many requests are waiting for a picture");
}

void connection::refuse(status code, const std::string& why) {
    respond({code, "text/plain; charset=utf-8", why + "\n", {}});
}

void connection::reject(const std::string& why) {
    keep_ = false;
    refuse(status::service_unavailable, why);
}

void connection::respond(answer a) {
    auto r = std::make_shared<http::response<http::string_body>>(a.code, 11);
    r->set(http::field::content_type, a.type);
    r->set(http::field::cache_control, "no-store");
    r->set("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : a.headers) r->set(name, value);
    r->keep_alive(keep_);
    const bool head = request_.method() == http::verb::head;
    const std::size_t bytes = a.body.size();
    if (!head) r->body() = std::move(a.body);
    r->content_length(bytes);
    stream_.expires_after(patience);
    http::async_write(stream_, *r, [self = shared_from_this(), r](error_code failed, std::size_t) {
        if (failed) return;
        if (self->keep_) return self->read();
        self->stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, failed);
    });
}

}  // namespace carousel::viewer::web
