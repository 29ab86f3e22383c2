#pragma once
// State shared by the connections of a server. To be used only in the server thread, except where noted.

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <list>
#include <set>
#include <string>
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
    // Connections are destroyed with io, so the containers that list them are declared before it.
    std::set<connection*> streams;      ///< clients of the stream
    std::list<connection*> incomplete;  ///< connections with an incomplete request, the oldest one first
    [[nodiscard]] bool has_stream_of(std::string_view viewer) const noexcept;
    u32 connections = 0, actions = 0;  ///< connections: the number of open connections; actions: the number
                                       ///< of actions that the supervisor has not answered yet
    bool closing = false;
    boost::asio::io_context io{1};
    pictures shots;                      ///< its picture thread posts tasks to `io`
    boost::asio::thread_pool asking{1};  ///< the thread that sends requests to the supervisor, because such a
                                         ///< request blocks
};

// The dashboard as one text, which loads no other resource. CMake assembles it from dashboard.html,
// dashboard.css and the dashboard*.js files.

[[nodiscard]] const std::string& dashboard_html();

}  // namespace carousel::viewer::web
