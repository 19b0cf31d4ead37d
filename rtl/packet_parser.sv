// Takes frames from an AXI-Stream, checks them, and keeps one of them for its event.
//
// Function: a frame is stored whole, then its headers and checksums are checked. Ethernet II without tags, IPv4 without
// options and fragments, and UDP are known; all other frames are dropped and counted, as are wrong lengths and checksums,
// frames with `s_axis_tuser` at their last beat, and frames longer than the memory.
// Latency: from the last beat to `event_valid` 2 clocks, and 1 for every 8 bytes of the frame.
// Throughput: one frame at a time; `s_axis_tready` is low from its last beat until its event is over.
// Interface: `header`, `time_of_frame` and the memory's read port hold from `event_valid` until `event_done`. The first byte of
// the wire is `s_axis_tdata[7:0]` and `header[511:504]`. `read_data` belongs to `read_word` of the same clock.
module packet_parser #(
    parameter int WORDS = 256
) (
    input  logic                     clk,
    input  logic                     rst,
    input  logic [63:0]              now,
    input  logic [63:0]              s_axis_tdata,
    input  logic [7:0]               s_axis_tkeep,
    input  logic                     s_axis_tvalid,
    output logic                     s_axis_tready,
    input  logic                     s_axis_tlast,
    input  logic                     s_axis_tuser,
    output logic                     event_valid,
    input  logic                     event_done,
    output logic [511:0]             header,
    output logic [15:0]              frame_length,
    output logic [15:0]              datagram_end,
    output logic [63:0]              time_of_frame,
    input  logic [$clog2(WORDS)-1:0] read_word,
    output logic [63:0]              read_data,
    output logic                     dropped
);
    localparam int INDEX = $clog2(WORDS);
    typedef enum logic [1:0] {RECEIVE, SUM, CHECK, HOLD} state_t;

    logic [63:0] memory[WORDS];
    state_t state;
    logic [INDEX:0] word;
    logic bad;
    logic [31:0] network_sum, transport_sum;

    // Bytes of the beat that comes in, and the beat in the order of the wire.
    logic [3:0] beat_bytes;
    logic [63:0] beat;
    always_comb begin
        beat_bytes = '0;
        for (int i = 0; i < 8; i++) begin
            beat_bytes += 4'(s_axis_tkeep[i]);
            beat[63 - 8 * i -: 8] = s_axis_tkeep[i] ? s_axis_tdata[8 * i +: 8] : 8'h0;
        end
    end

    logic [15:0] total_length, datagram_length, checksum;
    assign total_length = header[511 - 128 -: 16];
    assign datagram_length = header[511 - 304 -: 16];
    assign checksum = header[511 - 320 -: 16];
    assign datagram_end = 16'd34 + datagram_length;
    assign read_data = memory[read_word];
    assign s_axis_tready = state == RECEIVE;
    assign event_valid = state == HOLD;

    // The sums of the word under `word`: bytes 14 to 33 are IPv4, those from 34 on the datagram.
    logic [63:0] summed;
    logic [31:0] network_part, transport_part;
    assign summed = memory[word[INDEX-1:0]];
    always_comb begin
        network_part = '0;
        transport_part = '0;
        for (int i = 0; i < 8; i++) begin
            logic [15:0] place;
            logic [31:0] value;
            place = {16'(word) << 3} + 16'(i);
            value = (i % 2 == 0) ? {16'h0, summed[63 - 8 * i -: 8], 8'h0} : {24'h0, summed[63 - 8 * i -: 8]};
            if (place >= 16'd14 && place < 16'd34) network_part += value;
            if (place >= 16'd34 && place < datagram_end) transport_part += value;
        end
    end

    function automatic logic [15:0] fold(input logic [31:0] sum);
        logic [31:0] once;
        once = {16'h0, sum[31:16]} + {16'h0, sum[15:0]};
        return once[31:16] + once[15:0];
    endfunction

    logic [31:0] pseudo;
    assign pseudo = 32'(header[511 - 208 -: 16]) + 32'(header[511 - 224 -: 16]) + 32'(header[511 - 240 -: 16])
        + 32'(header[511 - 256 -: 16]) + 32'd17 + 32'(datagram_length);

    logic good;
    assign good = !bad && frame_length >= 16'd42 && header[511 - 96 -: 16] == 16'h0800
        && header[511 - 112 -: 8] == 8'h45 && (header[511 - 160 -: 16] & 16'hbfff) == 16'h0
        && header[511 - 184 -: 8] == 8'd17 && total_length >= 16'd28 && total_length <= frame_length - 16'd14
        && datagram_length >= 16'd8 && datagram_length <= total_length - 16'd20
        && fold(network_sum) == 16'hffff
        && (checksum == 16'h0 || fold(transport_sum + pseudo) == 16'hffff);

    always_ff @(posedge clk) begin
        dropped <= 1'b0;
        case (state)
            RECEIVE: if (s_axis_tvalid) begin
                if (word < (INDEX + 1)'(WORDS)) begin
                    memory[word[INDEX-1:0]] <= beat;
                    frame_length <= (word == '0 ? 16'd0 : frame_length) + 16'(beat_bytes);
                    if (word == '0) header <= {beat, 448'h0};
                    else if (word < (INDEX + 1)'(8)) header[511 - 64 * 32'(word[2:0]) -: 64] <= beat;
                    word <= word + 1'b1;
                end else bad <= 1'b1;
                if (s_axis_tlast) begin
                    state <= SUM;
                    word <= '0;
                    network_sum <= '0;
                    transport_sum <= '0;
                    time_of_frame <= now;
                    if (s_axis_tuser) bad <= 1'b1;
                end
            end
            SUM: begin
                network_sum <= network_sum + network_part;
                transport_sum <= transport_sum + transport_part;
                word <= word + 1'b1;
                if (({16'(word) << 3} + 16'd8) >= frame_length) state <= CHECK;
            end
            CHECK: begin
                word <= '0;
                bad <= 1'b0;
                state <= good ? HOLD : RECEIVE;
                dropped <= !good;
            end
            HOLD: if (event_done) state <= RECEIVE;
        endcase
        if (rst) begin
            state <= RECEIVE;
            word <= '0;
            bad <= 1'b0;
        end
    end
endmodule
