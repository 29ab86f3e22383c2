#pragma once
// What the connections of a server have in common. The server's thread, except where it says otherwise.

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <list>
#include <set>
#include <string_view>

#include "viewer/web/server.hpp"

namespace carousel::viewer::web {

class connection;

struct site {
    static constexpr u32 max_connections = 64, max_streams = 16, max_actions = 8;

    site(const server_options& o, watcher& w);
    ~site();
    site(const site&) = delete;
    site& operator=(const site&) = delete;

    server_options options;
    watcher& run;
    // Connections are destroyed with io, the last of what they use.
    std::set<connection*> streams;      ///< clients of the stream
    std::list<connection*> incomplete;  ///< whose request has not arrived whole, the longest first
    /// True if a client that calls itself so (?viewer=) receives the stream.
    [[nodiscard]] bool has_stream_of(std::string_view viewer) const noexcept;
    u32 connections = 0, actions = 0;  ///< open; asked of the supervisor and not answered
    bool closing = false;
    boost::asio::io_context io{1};
    pictures shots;                      ///< its thread posts into io
    boost::asio::thread_pool asking{1};  ///< questions to the supervisor, which block
};

}  // namespace carousel::viewer::web
