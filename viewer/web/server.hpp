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
// Only one picture at a time is in transit to a client of the stream, so a slow client misses pictures; a
// client that accepts no bytes for 20 s is disconnected. The numbers of connections and streams, sizes and
// times are limited. If all connections are in use, the one whose request has been incomplete for the longest
// time is closed, so that slow clients cannot exclude others.
//
// A request whose Host is not a name of this machine is refused, except for /metrics, /healthz and
// /readyz (requests.hpp). An HTTP/1.1 request without a Host header, and any request with two of them, is
// answered by 400 (RFC 9112, 3.2). An action needs the token in the header X-Carousel-Token or
// "Authorization: Bearer"; a token in the query of a POST is refused, because logs often contain addresses
// with their queries.

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
    f64 fps = 25;                    ///< maximum frame rate of the stream
    int quality = 80;                ///< quality of the JPEG pictures, 1..100
    bool read_only = false;          ///< refuses every action that sends a command to the run
};

class server {
public:
    /// Starts listening. Throws config_error if the address is in use or does not belong to this machine.
    server(const server_options& options, watcher& w);
    ~server();
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    /// Returns the address at which the server listens. If the given port was 0, the address contains the
    /// port that was assigned.
    [[nodiscard]] http_address address() const;
    /// Runs until SIGINT or SIGTERM, or until `tick`, which is called ten times per second, returns false.
    void run(const std::function<bool()>& tick);

private:
    struct parts;
    std::unique_ptr<parts> parts_;
};

}  // namespace carousel::viewer::web
