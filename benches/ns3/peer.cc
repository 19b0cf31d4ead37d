// A host of ns-3 on a TAP device of this namespace, in real time: one TCP connection that carries a file each way.
//
//   peer TAP ADDRESS GATEWAY CONTROL FILE ANSWER listen PORT
//   peer TAP ADDRESS GATEWAY CONTROL FILE ANSWER connect PEER PORT
//
// FILE is sent, then the connection is closed for sending; what comes is written to ANSWER. It ends when both directions have, with 1 if
// the connection fails. CONTROL is a type of ns-3's, e.g. ns3::TcpCubic.

#include "ns3/core-module.h"
#include "ns3/fd-net-device-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <string>
#include <sys/ioctl.h>
#include <vector>

using namespace ns3;

namespace {

constexpr uint32_t kChunk = 65536;
constexpr uint32_t kBuffer = 1 << 20;
/// Seconds in which the last segments are answered. More of TIME-WAIT is of no use here.
constexpr double kLinger = 0.5;

std::vector<uint8_t> g_file;
size_t g_sent = 0;
bool g_closed = false;
bool g_failed = false;
std::ofstream g_answer;

void Write(Ptr<Socket> socket, uint32_t) {
    while (g_sent < g_file.size()) {
        const uint32_t room = socket->GetTxAvailable();
        const uint32_t piece = std::min<size_t>({room, kChunk, g_file.size() - g_sent});
        if (piece == 0) {
            return;
        }
        const int taken = socket->Send(&g_file[g_sent], piece, 0);
        if (taken < 0) {
            return;
        }
        g_sent += taken;
    }
    if (!g_closed) {
        g_closed = true;
        socket->ShutdownSend();
    }
}

void Read(Ptr<Socket> socket) {
    std::vector<uint8_t> bytes(kChunk);
    int count;
    while ((count = socket->Recv(bytes.data(), kChunk, 0)) > 0) {
        g_answer.write(reinterpret_cast<const char*>(bytes.data()), count);
    }
}

/// Both directions have ended; the last segment may still be asked for.
void Changed(TcpSocket::TcpStates_t, TcpSocket::TcpStates_t now) {
    if (now == TcpSocket::CLOSED || now == TcpSocket::TIME_WAIT) {
        Simulator::Stop(Seconds(kLinger));
    }
}

void Failed(Ptr<Socket>) {
    g_failed = true;
    Simulator::Stop();
}

void Begin(Ptr<Socket> socket) {
    socket->SetRecvCallback(MakeCallback(&Read));
    socket->SetSendCallback(MakeCallback(&Write));
    socket->SetCloseCallbacks(MakeNullCallback<void, Ptr<Socket>>(), MakeCallback(&Failed));
    socket->TraceConnectWithoutContext("State", MakeCallback(&Changed));
    Write(socket, 0);
}

void Accepted(Ptr<Socket> socket, const Address&) { Begin(socket); }

int OpenTap(const char* name) {
    const int tap = open("/dev/net/tun", O_RDWR);
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (tap < 0 || ioctl(tap, TUNSETIFF, &request) < 0) {
        std::perror(name);
        std::exit(2);
    }
    return tap;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 9 && argc != 10) {
        std::fprintf(stderr, "usage: peer TAP ADDRESS GATEWAY CONTROL FILE ANSWER (listen PORT | connect PEER PORT)\n");
        return 2;
    }
    const bool listens = std::string(argv[7]) == "listen";
    std::ifstream file(argv[5], std::ios::binary);
    g_file.assign(std::istreambuf_iterator<char>(file), {});
    g_answer.open(argv[6], std::ios::binary);

    GlobalValue::Bind("SimulatorImplementationType", StringValue("ns3::RealtimeSimulatorImpl"));
    GlobalValue::Bind("ChecksumEnabled", BooleanValue(true));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(argv[4])));
    // As other ends here: a second at least would be most of the time.
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kBuffer));

    NodeContainer nodes(1);
    FdNetDeviceHelper helper;
    NetDeviceContainer devices = helper.Install(nodes);
    Ptr<FdNetDevice> device = DynamicCast<FdNetDevice>(devices.Get(0));
    device->SetAddress(Mac48Address("02:00:00:00:00:63"));
    device->SetFileDescriptor(OpenTap(argv[1]));

    InternetStackHelper internet;
    internet.Install(nodes);
    Ptr<Ipv4> ipv4 = nodes.Get(0)->GetObject<Ipv4>();
    const uint32_t interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, Ipv4InterfaceAddress(argv[2], Ipv4Mask("/24")));
    ipv4->SetUp(interface);
    Ipv4StaticRoutingHelper routing;
    routing.GetStaticRouting(ipv4)->SetDefaultRoute(argv[3], interface);

    Ptr<Socket> socket = Socket::CreateSocket(nodes.Get(0), TcpSocketFactory::GetTypeId());
    if (listens) {
        socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), std::atoi(argv[8])));
        socket->Listen();
        socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), MakeCallback(&Accepted));
    } else {
        socket->SetConnectCallback(MakeCallback(&Begin), MakeCallback(&Failed));
        socket->Bind();
        const InetSocketAddress to(Ipv4Address(argv[8]), std::atoi(argv[9]));
        Simulator::ScheduleWithContext(0, Seconds(0), [socket, to]() { socket->Connect(to); });
    }
    Simulator::Run();
    g_answer.close();
    Simulator::Destroy();
    return g_failed ? 1 : 0;
}
