#pragma once
// Interprets the messages on the control socket (control/control_message.hpp). Stages send a hello and stay
// connected, viewers a tap; clients send one request and get one reply.

#include "control/control_message.hpp"
#include "supervisor/engine/commands.hpp"
#include "supervisor/engine/control_socket.hpp"
#include "supervisor/engine/run_extension.hpp"
#include "supervisor/engine/run_phase.hpp"
#include "supervisor/engine/takeover.hpp"
#include "supervisor/engine/tap_leases.hpp"
#include "supervisor/processes/process_table.hpp"

namespace carousel::supervisor {

class message_dispatch : public connection_handler {
public:
    message_dispatch(process_table& seats, const run_phase& phase, takeover& takeover, tap_leases& taps,
                     commands& commands, run_extensions& extensions)
        : seats_(&seats),
          phase_(&phase),
          takeover_(&takeover),
          taps_(&taps),
          commands_(&commands),
          extensions_(&extensions) {}

    void on_message(control_socket& from, connection& c, shm::message& m) override;
    void on_close(const connection& c) override;

private:
    /// A message, and where it came from.
    struct arrival {
        control_socket& socket;
        connection& line;
        shm::message& message;
    };
    void receive(const arrival& a, const run::hello_message& hello);
    void receive(const arrival& a, const run::return_message& message);
    void receive(const arrival& a, const run::owner_message& message);
    void receive(const arrival& a, const run::tap_request& request);
    void receive(const arrival& a, const run::ready_message&);
    void receive(const arrival& a, const run::left_message&);
    void receive(const arrival& a, const run::back_message&);
    /// Passes a request for another host to the extension for that host. Returns false if the request is for
    /// this host.
    [[nodiscard]] bool route_request(connection& c, const nlohmann::json& request);

    process_table* seats_;
    const run_phase* phase_;
    takeover* takeover_;
    tap_leases* taps_;
    commands* commands_;
    run_extensions* extensions_;
};

}  // namespace carousel::supervisor
