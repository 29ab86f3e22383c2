#include "viewer/web/server.hpp"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>

#include "core/errors.hpp"
#include "core/process.hpp"
#include "viewer/web/connection.hpp"

namespace carousel::viewer::web {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
constexpr auto turn_every = std::chrono::milliseconds(100);

}  // namespace

struct server::parts {
    site all;
    tcp::acceptor acceptor{all.io};
    boost::asio::steady_timer ticker{all.io}, pause{all.io};
    boost::asio::signal_set signals{all.io};

    parts(const server_options& o, watcher& w) : all(o, w) {
        for (const int signal : {SIGINT, SIGTERM})
            if (!is_ignored(signal)) signals.add(signal);
        listen(o.address);
        accept();
    }

    void listen(const http_address& a) {
        const auto fail = [&](const char* what, const error_code& e) {
            const bool taken = e == boost::asio::error::address_in_use;
            throw config_error(fmt::format("the web UI can't be served at {}: {}: {}{}", a.text(), what,
                                           e.message(),
                                           taken ? "; another program listens there: choose another port, "
                                                   "e.g. --http 8081, or --http 0 for any"
                                                 : ""));
        };
        error_code failed;
        const tcp::endpoint at(boost::asio::ip::make_address(a.host == "localhost" ? "127.0.0.1" : a.host),
                               a.port);
        acceptor.open(at.protocol(), failed);
        if (failed) fail("creating a socket", failed);
        acceptor.set_option(boost::asio::socket_base::reuse_address(true), failed);
        acceptor.bind(at, failed);
        if (failed) fail("binding", failed);
        acceptor.listen(16, failed);
        if (failed) fail("listening", failed);
    }

    void accept() {
        acceptor.async_accept([this](error_code failed, tcp::socket socket) {
            if (failed == boost::asio::error::operation_aborted) return;
            if (failed) {  // usually the process is out of file descriptors, which is a temporary error
                pause.expires_after(turn_every);
                pause.async_wait([this](error_code) { accept(); });
                return;
            }
            const bool full = all.connections >= site::max_connections && !make_room();
            const auto client = std::make_shared<connection>(all, std::move(socket));
            if (full)
                client->reject("too many connections; try again later");
            else
                client->read();
            accept();
        });
    }

    /// Closes the connection whose request has been incomplete for longest. Returns false if there is none,
    /// because every request is complete and will soon be answered.
    bool make_room() {
        if (all.incomplete.empty()) return false;
        all.incomplete.front()->close_incomplete();
        return true;
    }

    void tick(const std::function<bool()>& fn) {
        ticker.expires_after(turn_every);
        ticker.async_wait([this, &fn](error_code failed) {
            if (failed || !fn()) return all.io.stop();
            tick(fn);
        });
    }
};

server::server(const server_options& options, watcher& w) : parts_(std::make_unique<parts>(options, w)) {}
server::~server() = default;

http_address server::address() const {
    return {parts_->all.options.address.host, parts_->acceptor.local_endpoint().port()};
}

void server::run(const std::function<bool()>& tick) {
    parts_->signals.async_wait([this](error_code, int) { parts_->all.io.stop(); });
    parts_->tick(tick);
    parts_->all.io.run();
}

}  // namespace carousel::viewer::web
