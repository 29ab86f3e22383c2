#pragma once
// The HTTP server of the dashboard: one thread, which never waits for a client. Boost.Beast parses.
//   GET /               the dashboard                 GET /snapshot.png   the newest picture, complete
//   GET /stream.mjpg    the picture, live             GET /status.json, /history.json   see status.hpp
//   GET /metrics        for Prometheus                GET /healthz, /readyz   see status.hpp
//   GET /pixel.json     the values of a pixel         POST /stages/STAGE/ACTION   kill, stop, cont, restart,
//                                                                                 down, up; needs the token
//                                                     POST /picture     selects the picture:
//                                                                       requests.hpp; needs the token
//                                                     POST /parameters  requests.hpp; needs the token
//                                                     POST /runs/NAME/watch   selects a run; needs the token
//
// At most one picture per client of the stream is in transit: a slow client misses pictures, and a client
// that accepts nothing for 20 s is dropped. Connections, streams, sizes and times are bounded. If all
// connections are taken, the one whose request has been incomplete for longest is closed, so that slow
// clients cannot exclude others.
//
// A request whose Host is not a name of this machine is refused, except for /metrics, /healthz and
// /readyz (requests.hpp). HTTP/1.1 without a Host, and any request with two, returns 400 (RFC 9112, 3.2). An
// action needs the token in the header X-Carousel-Token or "Authorization: Bearer"; a token in the query of a
// POST is refused, because addresses end up in logs.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/address.hpp"
#include "viewer/web/pictures.hpp"
#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

struct server_options {
    http_address address;
    std::string token;
    std::vector<std::string> hosts;  ///< additional names of this machine (--http-host)
    picture_request request;         ///< the first picture to show
    f64 fps = 25;                    ///< maximum of the stream
    int quality = 80;                ///< quality of the JPEG pictures, 1..100
};

class server {
public:
    /// Starts listening. Throws config_error if the address is in use or not this machine's.
    server(const server_options& options, watcher& w);
    ~server();
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    /// The listening address; with port 0 the port that was assigned.
    [[nodiscard]] http_address address() const;
    /// Runs until SIGINT or SIGTERM, or until `tick`, which is called ten times per second, returns false.
    void run(const std::function<bool()>& tick);

private:
    struct parts;
    std::unique_ptr<parts> parts_;
};

}  // namespace carousel::viewer::web
