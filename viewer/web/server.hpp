#pragma once
// The page's HTTP server: one thread, nothing in it waits for a client. Boost.Beast parses.
//   GET /               the page                      GET /snapshot.png   the newest picture, whole
//   GET /stream.mjpg    the picture, live             GET /status.json, /history.json   see status.hpp
//   GET /metrics        for Prometheus                POST /stages/STAGE/ACTION   kill, stop, cont, restart;
//   GET /pixel.json     what lies at a pixel                                      takes the token
//                                                     POST /picture               which one: wish.hpp; token
//
// A client of the stream has at most one picture under way: while it takes that one it misses the others, and
// one that takes nothing for 20 s is dropped. There are bounds on everything a stranger can ask for:
// connections, streams, sizes, times. A request whose Host is not this machine's is refused (guard.hpp); an
// action needs the token, as the header X-Carousel-Token or "Authorization: Bearer", or as ?token=.

#include <functional>
#include <memory>
#include <string>

#include "core/http_address.hpp"
#include "viewer/web/pictures.hpp"
#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

struct server_options {
    http_address address;
    std::string token;
    picture_wish wish;  ///< whose picture, at first
    f64 fps = 25;       ///< of the stream, at most
    int quality = 80;   ///< of its JPEG pictures, 1..100
};

class server {
public:
    /// Listens. Throws config_error: the address is taken or not this machine's.
    server(const server_options& options, watcher& w);
    ~server();
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    /// Where it listens; with port 0 the one that was free.
    [[nodiscard]] http_address address() const;
    /// Until SIGINT or SIGTERM; `tick` is called ten times a second and ends it by returning false.
    void run(const std::function<bool()>& tick);

private:
    struct parts;
    std::unique_ptr<parts> parts_;
};

}  // namespace carousel::viewer::web
