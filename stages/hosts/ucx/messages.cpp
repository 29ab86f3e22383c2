// Traffic of a connection: messages, and frames in pieces.
#include <cstring>

#include "core/clock.hpp"
#include "stages/hosts/ucx/implementation.hpp"

namespace carousel::hosts {
namespace {
constexpr unsigned pieces_under_way = 3;  ///< number of pieces in flight per connection: one piece is being
                                          ///< transferred while the other pieces are being requested
}

// The connection that the message came from.
transport::implementation::link* transport::implementation::link_of(const ucp_am_recv_param_t* p) {
    if ((p->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) return nullptr;
    for (auto& [number, l] : links_)
        if (l->endpoint == p->reply_ep && !l->failed) return l.get();
    return nullptr;
}

void transport::implementation::sent(outgoing* o) {
    const std::unique_ptr<outgoing> over(o);
    --under_way_;
    if (o->pieces) o->pieces->over(o->data_bytes, now_ns());
}

void transport::implementation::sent_by_ucx(void* request, ucs_status_t, void* user) {
    auto* o = static_cast<outgoing*>(user);
    o->of->sent(o);
    ucp_request_free(request);
}

void transport::implementation::post(link& l, unsigned id, outgoing* o, std::span<const std::byte> data) {
    ++under_way_;
    if (o->pieces) o->pieces->begun(now_ns());
    ucp_request_param_t p{};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS |
                     UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    p.cb.send = &sent_by_ucx;
    p.user_data = o;
    const bool piece = id == frame_id;
    p.memory_type =
        piece && options_.gpu_memory && !data.empty() ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
    p.flags = UCP_AM_SEND_FLAG_REPLY |
              (piece && data.size() > least_piece ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
    void* request = ucp_am_send_nbx(l.endpoint, id, piece ? o->bytes.data() : nullptr,
                                    piece ? o->bytes.size() : 0, data.data(), data.size(), &p);
    if (request == nullptr) return sent(o);
    if (!UCS_PTR_IS_ERR(request)) return;
    l.failed = true;
    l.why = ucs_status_string(UCS_PTR_STATUS(request));
    sent(o);
}

void transport::implementation::send(u32 connection, const std::vector<std::byte>& bytes) {
    const auto at = links_.find(connection);
    if (at == links_.end() || at->second->failed) return;
    auto* o = new outgoing{this, bytes};
    post(*at->second, message_id, o, o->bytes);
}

void transport::implementation::send_frame(u32 connection, const std::vector<std::byte>& header,
                                           const std::byte* data, u64 bytes, u64 ring_sequence) {
    auto frame = std::make_shared<outgoing_frame>(header, data, bytes, [this, connection, ring_sequence] {
        to_->frame_sent(connection, ring_sequence);
    });
    const auto at = links_.find(connection);
    if (at == links_.end() || at->second->failed) return;
    at->second->frames.add(std::move(frame));
    post_pieces(*at->second);
}

bool transport::implementation::post_pieces(link& l) {
    bool any = false;
    while (!l.failed && l.pieces->under_way() < pieces_under_way) {
        auto piece = l.frames.next(l.pieces->piece_bytes());
        if (!piece) break;
        post(l, frame_id,
             new outgoing{this, std::move(piece->front), std::move(piece->of), l.pieces, piece->data.size()},
             piece->data);
        any = true;
    }
    return any;
}

// Carousel sends only pieces by a rendezvous and never messages. So if a message arrives by a rendezvous, it
// is longer than permitted.
void transport::implementation::on_message(link& l, std::span<const std::byte> bytes, bool rendezvous) {
    if (rendezvous || bytes.size() > (l.trusted ? options_.message_bytes : options_.first_message_bytes))
        return disconnect(l, l.trusted ? "its message exceeds the size limit of this link"
                                       : "its message exceeds the size limit before authentication");
    to_->message_received(l.number, bytes);
}

void transport::implementation::received_by_ucx(void* request, ucs_status_t s, size_t, void* user) {
    const std::unique_ptr<incoming> in(static_cast<incoming*>(user));
    --in->of->under_way_;
    if (s == UCS_OK) in->frame->got(in->bytes);
    ucp_request_free(request);
}

ucs_status_t transport::implementation::on_piece(link& l, std::span<const std::byte> front, void* data,
                                                 u64 bytes, bool rendezvous) {
    if (!l.trusted || front.size() > options_.message_bytes ||
        bytes > (rendezvous ? most_piece : least_piece)) {
        disconnect(l, l.trusted ? "a piece of its frame exceeds the size limit of this link"
                                : "a frame was received before authentication");
        return UCS_OK;
    }
    const auto begin = [&](std::span<const std::byte> header, u64 whole) {
        u64 ticket = 0;
        std::byte* const room = to_->frame_begins(l.number, header, whole, ticket);
        return std::make_shared<arriving_frame>(
            room, whole, [this, ticket](bool all) { to_->frame_received(ticket, all); });
    };
    const auto place = l.coming.next(front, bytes, begin);
    if (!place) {
        l.failed = true;
        l.why = "the pieces of its frames do not fit together";
        return UCS_OK;
    }
    if (place->to == nullptr) return UCS_OK;
    if (!rendezvous) {
        if (bytes > 0) std::memcpy(place->to, data, bytes);
        place->of->got(bytes);
        return UCS_OK;
    }
    auto* const in = new incoming{this, place->of, bytes};
    ucp_request_param_t with{};
    with.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    with.memory_type = UCS_MEMORY_TYPE_HOST;
    with.cb.recv_am = &received_by_ucx;
    with.user_data = in;
    ++under_way_;
    void* request = ucp_am_recv_data_nbx(worker_, data, place->to, bytes, &with);
    if (request == nullptr || !UCS_PTR_IS_ERR(request)) return UCS_INPROGRESS;
    --under_way_;
    delete in;  // the bytes of the piece are missing, so the frame is incomplete
    return UCS_OK;
}

}  // namespace carousel::hosts
