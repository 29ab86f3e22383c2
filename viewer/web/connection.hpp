#pragma once
// The connection of one client. It reads a request, replies, and reads the next one; or it sends the stream
// until the client disconnects. The object exists as long as an operation is pending for it. Server thread
// only.

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <optional>

#include "viewer/web/requests.hpp"
#include "viewer/web/site.hpp"
#include "viewer/web/status.hpp"

namespace carousel::viewer::web {

class connection : public std::enable_shared_from_this<connection> {
public:
    connection(site& s, boost::asio::ip::tcp::socket socket);
    ~connection();
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;

    void read();
    /// Sends the status 503 with one sentence, and then closes the connection.
    void reject(const std::string& why);
    /// Closes a connection whose request is incomplete, to make room for another client.
    void close_incomplete();
    /// Returns the name that a client of the stream has chosen for itself (?viewer=), or "".
    [[nodiscard]] const std::string& viewer() const noexcept { return viewer_; }
    /// Offers a new picture to the stream. If no other picture is in transit, the new picture is sent now.
    /// Otherwise it is sent after the picture in transit, unless a newer picture has been offered by then.
    void offer(const pictures::jpeg_ptr& picture);

private:
    using request = boost::beast::http::request<boost::beast::http::string_body>;
    using status = boost::beast::http::status;
    struct answer {
        status code = status::ok;
        std::string type = "text/plain; charset=utf-8", body;
        std::vector<std::pair<std::string, std::string>> headers;
    };
    void on_request();
    [[nodiscard]] bool is_well_addressed(const request_target& target);
    void route(std::string_view path, std::string_view query);
    void answer_probe(probe_answer (*probe)(const view&));
    [[nodiscard]] bool may_act(std::string_view query);
    void set_incomplete(bool incomplete);
    void choose(std::string_view path, std::string_view query);
    void act(std::string_view path, std::string_view query);
    void set_parameters(std::string_view path, std::string_view query);
    void choose_picture(std::string_view query);
    void pixel(std::string_view query);
    void ask_supervisor(run::request what);
    void answer_action(const reply& r, u64 from);
    void snapshot();
    void begin_stream(std::string_view query);
    void watch_for_end();
    void send_picture();
    void end_stream();
    void refuse(status code, const std::string& why);
    void respond(answer a);

    site& site_;
    boost::beast::tcp_stream stream_;
    boost::beast::flat_buffer buffer_{16 * 1024};
    std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
    request request_;
    bool keep_ = false;
    std::optional<std::list<connection*>::iterator> incomplete_;  ///< position in site::incomplete
    // The stream.
    bool streaming_ = false, sending_ = false;
    std::string viewer_;
    pictures::jpeg_ptr next_,
        under_way_;        ///< next_: the next picture to send; under_way_: the picture being sent
    std::string part_;     ///< header of the part being sent
    char sink_[256] = {};  ///< buffer for the bytes that a client of the stream sends; they are discarded
};

}  // namespace carousel::viewer::web
