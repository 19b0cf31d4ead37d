// Completes a UDP datagram over IPv4 of at most 64 bytes and puts it out as an AXI-Stream.
//
// Function: sets the lengths of IPv4 and UDP by `frame_length`, makes both checksums, and sends the frame.
// Latency: 2 clocks from `frame_valid` and `frame_ready` to the first beat.
// Throughput: 2 clocks and one for every 8 bytes of a frame; one frame at a time.
// Interface: `frame` is taken at a clock with `frame_valid` and `frame_ready`; its first byte is `frame[511:504]`. The first byte
// of the wire is `m_axis_tdata[7:0]`. Frames that are not a multiple of 8 bytes long have fewer bits of `m_axis_tkeep` at the end.
module packet_sender (
    input  logic         clk,
    input  logic         rst,
    input  logic         frame_valid,
    output logic         frame_ready,
    input  logic [511:0] frame,
    input  logic [6:0]   frame_length,
    output logic [63:0]  m_axis_tdata,
    output logic [7:0]   m_axis_tkeep,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    output logic         m_axis_tlast
);
    typedef enum logic [1:0] {IDLE, COMPLETE, SEND} state_t;
    state_t state;
    logic [511:0] bytes;
    logic [6:0] left;

    function automatic logic [15:0] fold(input logic [31:0] sum);
        logic [31:0] once;
        once = {16'h0, sum[31:16]} + {16'h0, sum[15:0]};
        return once[31:16] + once[15:0];
    endfunction

    // `bytes` has the lengths already, zero checksums, and zeros behind its end.
    logic [31:0] network_sum, transport_sum;
    logic [15:0] datagram_checksum;
    always_comb begin
        network_sum = '0;
        transport_sum = 32'd17 + 32'(bytes[511 - 304 -: 16]) + 32'(bytes[511 - 208 -: 16])
            + 32'(bytes[511 - 224 -: 16]) + 32'(bytes[511 - 240 -: 16]) + 32'(bytes[511 - 256 -: 16]);
        for (int i = 7; i < 17; i++) network_sum += 32'(bytes[511 - 16 * i -: 16]);
        for (int i = 17; i < 32; i++) transport_sum += 32'(bytes[511 - 16 * i -: 16]);
        datagram_checksum = ~fold(transport_sum);
        if (datagram_checksum == 16'h0) datagram_checksum = 16'hffff;
    end

    assign frame_ready = state == IDLE;
    assign m_axis_tvalid = state == SEND;
    assign m_axis_tlast = left <= 7'd8;
    always_comb begin
        for (int i = 0; i < 8; i++) begin
            m_axis_tdata[8 * i +: 8] = bytes[511 - 8 * i -: 8];
            m_axis_tkeep[i] = 7'(i) < left;
        end
    end

    always_ff @(posedge clk) begin
        case (state)
            IDLE: if (frame_valid) begin
                state <= COMPLETE;
                bytes <= frame;
                bytes[511 - 128 -: 16] <= 16'(frame_length) - 16'd14;
                bytes[511 - 192 -: 16] <= 16'h0;
                bytes[511 - 304 -: 16] <= 16'(frame_length) - 16'd34;
                bytes[511 - 320 -: 16] <= 16'h0;
                left <= frame_length;
            end
            COMPLETE: begin
                state <= SEND;
                bytes[511 - 192 -: 16] <= ~fold(network_sum);
                bytes[511 - 320 -: 16] <= datagram_checksum;
            end
            SEND: if (m_axis_tready) begin
                bytes <= bytes << 64;
                left <= left - 7'd8;
                if (m_axis_tlast) state <= IDLE;
            end
            default: state <= IDLE;
        endcase
        if (rst) state <= IDLE;
    end
endmodule
