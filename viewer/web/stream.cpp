// connection: the live picture, as parts of one endless multipart response.
#include <fmt/format.h>

#include <array>
#include <boost/asio/write.hpp>
#include <chrono>

#include "viewer/web/connection.hpp"

namespace carousel::viewer::web {
namespace {

using boost::beast::error_code;
constexpr auto write_patience = std::chrono::seconds(20);
constexpr int send_buffer_bytes = 256 * 1024;  // a small buffer, because pictures that wait in it would
                                               // arrive too late
constexpr std::size_t longest_viewer = 64;
constexpr std::string_view boundary = "carousel-frame";

}  // namespace

void connection::begin_stream(std::string_view query) {
    if (request_.method() != boost::beast::http::verb::get)
        return refuse(status::method_not_allowed, "this path accepts GET");
    if (site_.streams.size() >= site::max_streams)
        return refuse(status::service_unavailable,
                      fmt::format("{} viewers already receive the stream, which is the limit: close one of "
                                  "them, or use /snapshot.png",
                                  site::max_streams));
    viewer_ = query_value(query, "viewer").substr(0, longest_viewer);
    error_code ignored;
    stream_.socket().set_option(boost::asio::socket_base::send_buffer_size(send_buffer_bytes), ignored);
    stream_.socket().set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    streaming_ = sending_ = true;
    site_.streams.insert(this);
    site_.shots.add_viewers(1);
    part_ = fmt::format(
        "HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary={0}\r\nCache-Control: "
        "no-store\r\n"
        "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n--{0}\r\n",
        boundary);
    watch_for_end();
    stream_.expires_after(write_patience);
    boost::asio::async_write(stream_, boost::asio::buffer(part_),
                             [self = shared_from_this()](error_code failed, std::size_t) {
                                 self->sending_ = false;
                                 if (failed) return self->end_stream();
                                 if (!self->next_) self->next_ = self->site_.shots.newest();
                                 self->send_picture();
                             });
}

// Reads from the socket in order to detect that the client leaves while there is no picture to send.
void connection::watch_for_end() {
    stream_.expires_never();
    stream_.async_read_some(boost::asio::buffer(sink_),
                            [self = shared_from_this()](error_code failed, std::size_t) {
                                if (failed) return self->end_stream();
                                if (self->streaming_) self->watch_for_end();
                            });
}

void connection::offer(const pictures::jpeg_ptr& picture) {
    next_ = picture;
    if (!sending_) send_picture();
}

void connection::send_picture() {
    if (!streaming_ || !next_) return;
    under_way_ = std::move(next_);
    next_.reset();
    sending_ = true;
    part_ = fmt::format("Content-Type: image/jpeg\r\nContent-Length: {}\r\nX-Carousel-Frame: {}\r\n\r\n",
                        under_way_->bytes.size(), under_way_->ring_sequence);
    // The boundary is sent immediately after the picture, because browsers show a part only when the next one
    // begins.
    static const std::string tail = fmt::format("\r\n--{}\r\n", boundary);
    const std::array<boost::asio::const_buffer, 3> parts{
        boost::asio::buffer(part_), boost::asio::buffer(under_way_->bytes), boost::asio::buffer(tail)};
    stream_.expires_after(write_patience);
    boost::asio::async_write(stream_, parts, [self = shared_from_this()](error_code failed, std::size_t) {
        self->sending_ = false;
        if (failed) return self->end_stream();
        self->send_picture();
    });
}

void connection::end_stream() {
    if (!streaming_ || site_.closing) return;
    streaming_ = false;
    site_.streams.erase(this);
    site_.shots.add_viewers(-1);
    error_code ignored;
    stream_.socket().close(ignored);
}

}  // namespace carousel::viewer::web
