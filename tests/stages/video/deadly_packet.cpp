// Preloaded into a stage: ends the process, or never returns, when certain packets are decoded, as a decoder
// with a fault does. DEADLY_PACKETS: "kill 1024 hang 2048", by their presentation times. "stall 512"
// takes 1.2 s, once per process, if the file STALL_IF exists.
#include <dlfcn.h>
#include <unistd.h>
extern "C" {
#include <libavcodec/avcodec.h>
}

#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" __attribute__((visibility("default"))) int avcodec_send_packet(AVCodecContext* codec,
                                                                          const AVPacket* packet) {
    static const auto real =
        reinterpret_cast<decltype(&avcodec_send_packet)>(::dlsym(RTLD_NEXT, "avcodec_send_packet"));
    const char* at = std::getenv("DEADLY_PACKETS");
    char how[8] = {};
    long long pts = 0;
    int length = 0;
    for (; at != nullptr && packet != nullptr && std::sscanf(at, "%7s %lld%n", how, &pts, &length) == 2;
         at += length) {
        if (packet->pts != pts) continue;
        if (std::string_view(how) == "kill") std::abort();
        if (std::string_view(how) == "hang")
            for (;;) ::pause();
        static bool stalled = false;
        const char* const only_if = std::getenv("STALL_IF");
        if (!stalled && only_if != nullptr && ::access(only_if, F_OK) == 0) ::usleep(1'200'000);
        stalled = true;
    }
    return real(codec, packet);
}
